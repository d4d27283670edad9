package main

// Exit codes of uwf that the scenarios tell apart (the reference is the
// program's own: uwf help exit-codes).
const (
	exitUsage   = 2
	exitMissing = 3
	exitInvalid = 4
	exitAgent   = 5
	exitLocked  = 75
	exitCorrupt = 7
	exitTimeout = 124
)
