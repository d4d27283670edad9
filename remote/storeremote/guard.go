package storeremote

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
)

// guard refuses a directory that another user of this machine can write, unless the user trusts
// all of them, and any with a link in the places that are written.
func guard(dir string, o Options) error {
	invalid := func(why string) error {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: dir + " " + why}
	}
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	const system = 0
	mine := append([]int{system, os.Geteuid()}, o.Users...)
	reachable := careful.Reachable(dir)
	others := func(info fs.FileInfo) bool {
		owner, known := careful.Owner(info)
		return !o.Shared && (known && !slices.Contains(mine, owner) || careful.OthersWrite(info) && reachable)
	}
	const advice = " can be written by another user of this machine: use ssh to an account that owns it, " +
		"or uwf remote add --trust, which lets whoever writes there run commands as you"
	if others(info) {
		return invalid(advice[1:])
	}
	for _, name := range []string{".", "cas", "locks"} {
		entries, err := os.ReadDir(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		for _, e := range entries {
			if e.Type()&fs.ModeSymlink != 0 {
				return invalid(fmt.Sprintf("has a link at %s: a remote's files are not links", filepath.Join(name, e.Name())))
			}
			if info, err := e.Info(); err == nil && others(info) { // or it is gone
				return invalid("has " + filepath.Join(name, e.Name()) + ", which" + advice)
			}
		}
	}
	return nil
}
