package durable_test

// fillUp is used only on Unix, where a process can limit its own files.
func fillUp([]string) error { return nil }
