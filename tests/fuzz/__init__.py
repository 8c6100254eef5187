"""What nobody would send on purpose, sent many times: `make fuzz`, and short forms for pytest."""
