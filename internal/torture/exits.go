package main

// Exit statuses of uwf that the scenarios tell apart; README.md lists them all.
const (
	exitUsage   = 2
	exitMissing = 3
	exitInvalid = 4
	exitAgent   = 5
	exitLocked  = 75
	exitWaiting = 6 // suspended
	exitCorrupt = 7
	exitTimeout = 124
	exitStopped = 143
)
