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

// ErrLocked means that another process holds a lock.
var ErrLocked = errors.New("is locked")

// Pauses between attempts to get a lock: a tenth of the time waited so far, within these bounds, so that
// short waits end quickly and long ones cost little.
const (
	minPause = time.Millisecond
	maxPause = 100 * time.Millisecond
)

// Held is a lock held by this process. It isn't safe for concurrent use.
type Held struct {
	f      *os.File
	path   string
	shared bool // a child process can hold it as well
}

// Lock acquires an exclusive lock on a file and creates the file and its directory if necessary. It waits
// until ctx is done; the error then is [ErrLocked] with ctx's cause.
//
// The lock belongs to the open file: a child process that inherits [Held.File] also holds it, until every
// copy is closed, at the latest when the processes exit. Other children don't get it. Two locks within one
// process exclude each other like locks of different processes.
func Lock(ctx context.Context, path string) (*Held, error) {
	return wait(ctx, path, openLocked)
}

// LockShared is Lock for a shared lock, which excludes only exclusive locks. It needs no write permission if
// the file exists.
func LockShared(ctx context.Context, path string) (*Held, error) {
	return wait(ctx, path, openShared)
}

// turnSuffix is the suffix of the file that shows that a process waits for exclusive access. It shows that for
// turnLength at a time, during which others give way; if one holds the lock for longer, it pauses, so that
// others don't wait for a lock that isn't free.
const (
	turnSuffix = ".turn"
	turnLength = 50 * time.Millisecond
	turnPause  = 20 * turnLength
)

// LockExclusive is [Lock] for a lock that is nearly always held shared: callers of [YieldToExclusive] let it go
// first, but only for a moment.
func LockExclusive(ctx context.Context, path string) (*Held, error) {
	notify, _ := ctx.Value(waitingKey{}).(func(string))
	quiet := WithWaiting(ctx, nil)
	for waited := time.Duration(0); ; waited += turnLength + turnPause {
		held, err := lockWithin(quiet, turnLength, path+turnSuffix)
		if err == nil {
			turn := held
			held, err = lockWithin(quiet, turnLength, path)
			if ended := turn.Unlock(); ended != nil && err == nil {
				return nil, errors.Join(ended, held.Unlock())
			}
		}
		if errors.Is(err, ErrLocked) && ctx.Err() == nil {
			held, err = lockWithin(quiet, turnPause, path)
		}
		if !errors.Is(err, ErrLocked) || ctx.Err() != nil {
			return held, err
		}
		if notify != nil && waited >= notifyAfter {
			notify(path)
			notify = nil
		}
	}
}

func lockWithin(ctx context.Context, limit time.Duration, path string) (*Held, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return Lock(ctx, path)
}

// YieldToExclusive waits, before acquiring a shared lock, for a waiting [LockExclusive], at most twice as long as
// that waits in one turn. A process that already holds the lock must not call it, because both would wait for each
// other.
func YieldToExclusive(ctx context.Context, path string) {
	if _, err := os.Lstat(path + turnSuffix); err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 2*turnLength)
	defer cancel()
	if turn, err := LockShared(ctx, path+turnSuffix); err == nil {
		_ = turn.Unlock()
	}
}

// notifyAfter is the time that Lock waits before it calls the function given to [WithWaiting].
const notifyAfter = 3 * time.Second

type waitingKey struct{}

// WithWaiting returns a context in which Lock calls notify with the path of each lock that it waits for longer
// than a moment, once and while waiting.
func WithWaiting(ctx context.Context, notify func(path string)) context.Context {
	return context.WithValue(ctx, waitingKey{}, notify)
}

// wait tries until ctx is done.
func wait(ctx context.Context, path string, open func(string) (*os.File, error)) (*Held, error) {
	notify, _ := ctx.Value(waitingKey{}).(func(string))
	var waited time.Duration
	for {
		held, err := tryLock(path, open)
		if !errors.Is(err, ErrLocked) {
			return held, err
		}
		if notify != nil && waited >= notifyAfter {
			notify(path)
			notify = nil
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

// TryLock is Lock without waiting: it fails with [ErrLocked].
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
		// The holder removed it after we opened it, so no other process will ever find the file that we locked.
		if err := f.Close(); err != nil {
			return nil, pathError("lock", path, err)
		}
	}
}

// isAt reports whether path still refers to the open file.
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

// File returns the open file, for a child to inherit. From then on, Unlock no longer releases the lock of the
// child.
func (h *Held) File() *os.File {
	h.shared = true
	return h.f
}

// Lend returns the open file, for a child that keeps the lock if this process is killed. [Held.Unlock] still
// releases the lock for both (on Windows only when the child has exited).
func (h *Held) Lend() *os.File { return h.f }

// Unlock releases the lock, or only our copy of it if a child might have inherited one. The file remains.
func (h *Held) Unlock() error { return pathError("unlock", h.path, h.release(), h.f.Close()) }

// Holder describes the holder of a lock. It is a note for people and for sending signals, not proof that the
// lock is held: a killed process leaves it behind.
type Holder struct {
	Pid   int
	Since time.Time // to the second
	// Child is a process that works for the holder and can outlive it; 0 for none.
	Child int
	Birth string // distinguishes Child from another process with its id; "" if unknown
}

// ErrNoHolder means that a lock file has no readable note.
var ErrNoHolder = errors.New("does not record its holder")

// ErrNotLock means that an inherited file isn't the expected lock.
var ErrNotLock = errors.New("is not the inherited file")

// maxNote bounds a lock file, in bytes. It is far above the length of a note.
const maxNote = 4 << 10

const (
	holderFormat = "pid %d since %s\n"
	childFormat  = "child %d born %s\n"
)

// String returns the first line of the note, such as "pid 123 since 2026-11-21T15:04:05Z".
func (h Holder) String() string {
	s := fmt.Sprintf(holderFormat, h.Pid, h.Since.UTC().Format(time.RFC3339))
	return s[:len(s)-1]
}

// Note writes the holder to the lock file. A concurrent reader sees the old note or the new one, because the
// file is truncated after it is overwritten.
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

// ReadHolder reads the note in a lock file without acquiring the lock. It returns [ErrNoHolder] if the note
// is missing or being written, or [fs.ErrNotExist].
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
		return Holder{}, ErrNoHolder // the format cannot represent it
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
