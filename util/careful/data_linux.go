package careful

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// The two questions of lseek(2).
const (
	seekData = 3
	seekHole = 4
)

// nextData finds the next bytes, from an offset on, that are no hole.
func nextData(f *os.File, from int64) (begin, end int64, err error) {
	begin, err = f.Seek(from, seekData)
	if errors.Is(err, syscall.ENXIO) {
		return 0, 0, io.EOF
	}
	if err != nil {
		return everything(from)
	}
	if end, err = f.Seek(begin, seekHole); err != nil {
		return everything(from)
	}
	return begin, end, nil
}
