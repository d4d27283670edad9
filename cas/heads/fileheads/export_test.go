package fileheads

// Summed is a line with its sum.
func Summed(object []byte) []byte { return summed(object) }

// WithSum is a text of threads.yaml as uwf writes it.
func WithSum(text string) []byte { return parseTable("", []byte(text), true).render() }
