package fileheads

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/durable"
)

// removedFile lists the IDs of removed threads, one per line, so that a home that serves as a remote doesn't
// accept them again. It can also list threads that exist: a person has imported them again, or the removal
// was interrupted.
const removedFile = "removed.txt"

// Removed reports whether a thread that doesn't exist was removed by [Heads.Forget].
func (x *Heads) Removed(thread string) (bool, error) {
	data, err := x.readFile(removedFile)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.Contains(strings.Fields(string(data)), thread), err
}

// noteRemoved adds threads to the list of removed ones. history.lock must be held.
func (x *Heads) noteRemoved(threads map[string]bool, gone func(thread string) bool) error {
	data, err := x.readFile(removedFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	all := strings.Fields(string(data))
	before := len(all)
	for thread := range threads {
		if gone(thread) {
			all = append(all, thread)
		}
	}
	slices.Sort(all)
	if all = slices.Compact(all); len(all) == before {
		return nil
	}
	return durable.WriteFile(x.fsys, x.path(removedFile), []byte(strings.Join(all, "\n")+"\n"), 0o644)
}
