package cli

// renamed has our own names from before the first release, each with the one that took its
// place. The error for an old name prints the new one. A flag stands behind its command, one
// that several commands have behind "--" alone.
func renamed() map[string]string {
	return map[string]string{
		"tick":           "uwf run-due",
		"bundle":         "uwf verify FILE",
		"thread again":   "uwf thread retry",
		"thread join":    "uwf thread wait",
		"thread running": "uwf thread list --status running",
		"thread tell":    "uwf thread message",
		"--at":           "--if-head",
		"--expect":       "--if-head",
		"--fresh":        "--discard-result",
		"--more":         "--raise-limit",
		"--more-cost":    "--add-cost",
		"--more-time":    "--add-time",
		"--more-tokens":  "--add-tokens",
	}
}
