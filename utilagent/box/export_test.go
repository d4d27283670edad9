package box

// Abandon is what a kill does: the lock is free, all else stays.
func Abandon(run *Run) {
	if err := run.lock.Unlock(); err != nil {
		panic(err)
	}
}
