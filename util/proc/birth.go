package proc

// Birth tells a process from another that gets the same id after it has ended. It
// means nothing by itself, and is "" where the system does not tell it (only
// Linux does).
func Birth(pid int) string { return birth(pid) }

// Reused reports whether an id belongs to another process now than to the one
// with this birth. A process that has ended and whose id is free is not reused.
func Reused(pid int, was string) bool {
	now := birth(pid)
	return was != "" && now != "" && now != was
}
