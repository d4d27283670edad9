package offlimits

// WithNewDirs is a list with which a command may add so many directories.
func WithNewDirs(n int) List { return List{most: n} }

// Abandon is what a kill does: the lock is free, the file stays.
func (w *Watched) Abandon() {
	if err := w.held.Unlock(); err != nil {
		panic(err)
	}
}
