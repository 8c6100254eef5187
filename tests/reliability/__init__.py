"""What the service survives: kills, full disks, repeated requests, and stops; `make reliability` takes longer.

Each test starts services as processes of their own and asks them over HTTP.
"""
