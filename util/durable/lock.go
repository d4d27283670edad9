package durable

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/safeopen"
)

// ErrLocked means that somebody else holds a lock.
var ErrLocked = errors.New("is locked")

// How long Lock pauses between two tries: a tenth of what it has waited already,
// within these bounds, so that short waits end soon and long ones cost nothing.
const (
	minPause = time.Millisecond
	maxPause = 100 * time.Millisecond
)

// Held is a lock that this process holds. It is not safe for concurrent use.
type Held struct {
	f      *os.File
	path   string
	shared bool // a child may hold it too
}

// Lock takes an exclusive lock on a file, making it and its directory if need
// be. It waits until ctx ends; the error then is [ErrLocked] and ctx's cause.
//
// The lock belongs to the open file: a child that inherits [Held.File] holds it
// too, until every copy is closed, which the end of a process does. Children
// that are not given it explicitly do not get it. Two locks in one process
// exclude each other as those of two processes do.
func Lock(ctx context.Context, path string) (*Held, error) {
	return wait(ctx, path, openLocked)
}

// LockShared is Lock, but for a lock that others may hold shared too; with an
// exclusive one it excludes each other. It needs no right to write the file once
// that exists.
func LockShared(ctx context.Context, path string) (*Held, error) {
	return wait(ctx, path, openShared)
}

// turnSuffix is of the file by which one who wants a lock alone is seen to wait;
// turnPatience is how long others wait for that. Whoever waits has the lock by then,
// unless somebody holds it for long.
const (
	turnSuffix   = ".turn"
	turnPatience = 2 * time.Second
)

// LockAlone is [Lock] for a lock that is nearly always held shared by somebody: who
// calls [GiveWay] lets it go first.
func LockAlone(ctx context.Context, path string) (*Held, error) {
	turn, err := Lock(ctx, path+turnSuffix)
	if err != nil {
		return nil, err
	}
	held, err := Lock(ctx, path)
	if ended := turn.Unlock(); ended != nil && err == nil {
		return nil, errors.Join(ended, held.Unlock())
	}
	return held, err
}

// GiveWay waits, before a lock is taken shared, while somebody wants it alone, for
// two seconds at most. Whoever holds it already must not call it: they would wait for
// each other.
func GiveWay(ctx context.Context, path string) {
	if _, err := os.Lstat(path + turnSuffix); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, turnPatience)
	defer cancel()
	if turn, err := LockShared(ctx, path+turnSuffix); err == nil {
		_ = turn.Unlock()
	}
}

// tellAfter is how long Lock waits before it tells somebody; see [WithWaiting].
const tellAfter = 3 * time.Second

type waitingKey struct{}

// WithWaiting returns a context in which tell is told the path of each lock that has
// to be waited for longer than a moment, once, while it is waited for.
func WithWaiting(ctx context.Context, tell func(path string)) context.Context {
	return context.WithValue(ctx, waitingKey{}, tell)
}

// wait tries until ctx ends.
func wait(ctx context.Context, path string, open func(string) (*os.File, error)) (*Held, error) {
	tell, _ := ctx.Value(waitingKey{}).(func(string))
	var waited time.Duration
	for {
		held, err := tryLock(path, open)
		if !errors.Is(err, ErrLocked) {
			return held, err
		}
		if tell != nil && waited >= tellAfter {
			tell(path)
			tell = nil
		}
		pause := min(max(waited/10, minPause), maxPause)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, fmt.Errorf("%w: %w", err, context.Cause(ctx))
		case <-timer.C:
			waited += pause
		}
	}
}

// TryLock is Lock, but fails at once with [ErrLocked].
func TryLock(path string) (*Held, error) { return tryLock(path, openLocked) }

func tryLock(path string, open func(string) (*os.File, error)) (*Held, error) {
	for {
		f, err := open(path)
		if errors.Is(err, fs.ErrNotExist) {
			if err := MkdirAll(OS(), filepath.Dir(path), 0o700); err != nil {
				return nil, pathError("lock", path, err)
			}
			f, err = open(path)
		}
		if err != nil {
			return nil, pathError("lock", path, err)
		}
		current, err := isAt(f, path)
		if err != nil {
			return nil, pathError("lock", path, err, f.Close())
		}
		if current {
			return &Held{f: f, path: path}, nil
		}
		// Its holder removed it after we had opened it: what we locked is a file
		// that nobody else will ever find.
		if err := f.Close(); err != nil {
			return nil, pathError("lock", path, err)
		}
	}
}

// isAt reports whether path still names the open file.
func isAt(f *os.File, path string) (bool, error) {
	opened, err := f.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(opened, named), nil
}

// File is the open file, to be inherited by a child. From then on the lock is
// no longer ours alone to give back.
func (h *Held) File() *os.File {
	h.shared = true
	return h.f
}

// Lend is the open file, to be inherited by a child that keeps the lock if this process is
// killed. The lock is still ours: [Held.Unlock] ends it for the child, too (on Windows only once
// the child has ended).
func (h *Held) Lend() *os.File { return h.f }

// Unlock gives the lock back, or our copy of it if a child may have inherited
// one. The file stays.
func (h *Held) Unlock() error { return pathError("unlock", h.path, h.release(), h.f.Close()) }

// Holder says who holds a lock. It is a note for people and for signals, never
// proof that the lock is held: a killed process leaves it behind.
type Holder struct {
	Pid   int
	Since time.Time // to the second
	// Child is a process that works for the holder, and may outlive it; 0: none.
	Child int
	Birth string // of Child, a word that tells it from another with its id; "": unknown
}

// ErrNoHolder means that a lock file has no readable note.
var ErrNoHolder = errors.New("does not say who holds it")

// ErrNotLock means that an inherited file is not the lock that it should be.
var ErrNotLock = errors.New("is not the inherited file")

// maxNote bounds a lock file, in bytes.
const maxNote = 4 << 10

const (
	holderFormat = "pid %d since %s\n"
	childFormat  = "child %d born %s\n"
)

// String is the note's first line, such as "pid 123 since 2026-11-21T15:04:05Z".
func (h Holder) String() string {
	s := fmt.Sprintf(holderFormat, h.Pid, h.Since.UTC().Format(time.RFC3339))
	return s[:len(s)-1]
}

// Note writes into the lock file who holds it. A reader at the same moment sees
// the old note or the new one: the file is cut after it is overwritten.
func (h *Held) Note(who Holder) error {
	text := []byte(who.String() + "\n")
	if who.Child > 0 && who.Birth != "" {
		text = fmt.Appendf(text, childFormat, who.Child, who.Birth)
	}
	if _, err := h.f.WriteAt(text, 0); err != nil {
		return pathError("note in", h.path, err)
	}
	return pathError("note in", h.path, h.f.Truncate(int64(len(text))))
}

// ReadHolder reads the note in a lock file, without the lock. Errors:
// [ErrNoHolder] if there is none or it is being written, [fs.ErrNotExist].
func ReadHolder(path string) (Holder, error) {
	text, err := safeopen.ReadFile(path, maxNote, safeopen.Follow)
	if err != nil {
		return Holder{}, err
	}
	h, err := parseHolder(string(text))
	if err != nil {
		return Holder{}, pathError("read", path, err)
	}
	return h, nil
}

func parseHolder(text string) (Holder, error) {
	var h Holder
	var since string
	if _, err := fmt.Sscanf(text, holderFormat, &h.Pid, &since); err != nil || h.Pid <= 0 {
		return Holder{}, ErrNoHolder
	}
	at, err := time.Parse(time.RFC3339, since)
	if year := at.UTC().Year(); err != nil || year < 0 || year > 9999 {
		return Holder{}, ErrNoHolder // it could not be written again
	}
	h.Since = at.UTC()
	if _, line, _ := strings.Cut(text, "\n"); line != "" {
		var pid int
		var birth string
		if _, err := fmt.Sscanf(line, childFormat, &pid, &birth); err == nil && pid > 0 {
			h.Child, h.Birth = pid, birth
		}
	}
	return h, nil
}
