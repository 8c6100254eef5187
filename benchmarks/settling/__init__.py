"""What the service earns while rewards are late: each rule of settling, on the same stream of events."""
