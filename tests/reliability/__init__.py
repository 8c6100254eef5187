"""What the service survives: kills, full disks, repeated requests, and stops; `make reliability` takes longer.

Each test starts services in their own processes, and sends requests over HTTP.
"""
