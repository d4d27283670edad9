package fileheads

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"slices"
	"sync/atomic"
	"time"
)

// kept holds what was read from files, for a [Heads] with a clock. It is valid while they are the same files.
type kept[T any] struct {
	last atomic.Pointer[keptRead[T]]
}

type keptRead[T any] struct {
	files []fs.FileInfo // nil: missing
	value T
}

// racy is the age from which a file cannot change again within the same timestamp.
const racy = time.Second

// of returns what read returns for files. Its callers share the value.
func (k *kept[T]) of(x *Heads, read func() (T, error), names ...string) (T, error) {
	if x.Now == nil {
		return read()
	}
	settled := true
	files := make([]fs.FileInfo, len(names))
	for i, name := range names {
		file, err := os.Stat(x.path(name)) // before reading: a later change is noticed the next time
		switch {
		case err == nil:
			files[i] = file
			settled = settled && x.Now().Sub(file.ModTime()) > racy
		case !errors.Is(err, fs.ErrNotExist):
			settled = false
		}
	}
	if last := k.last.Load(); last != nil && settled && slices.EqualFunc(files, last.files, sameFile) {
		return last.value, nil
	}
	value, err := read()
	if err == nil && settled {
		k.last.Store(&keptRead[T]{files, value})
	}
	return value, err
}

func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// look is [Heads.read] of threads.yaml for callers that do not change it.
func (x *Heads) look(ctx context.Context) (*table, error) {
	t, err := x.threads.of(x, func() (table, error) {
		t, err := x.read(ctx, threadsFile)
		if err != nil {
			return table{}, err
		}
		return *t, nil
	}, threadsFile)
	return &t, err // a copy, which is parsed when needed
}
