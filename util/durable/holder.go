package durable

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/careful"
)

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
	text, err := careful.ReadFile(path, maxNote, careful.Follow)
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
