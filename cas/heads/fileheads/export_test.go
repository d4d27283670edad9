package fileheads

// Summed returns a line with its checksum.
func Summed(object []byte) []byte { return summed(object) }

// WithSum returns a text of threads.yaml as written by uwf.
func WithSum(text string) []byte { return parseTable("", []byte(text), true).render() }
