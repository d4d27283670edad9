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
	owner, known := careful.Owner(info)
	const system = 0
	mine := !known || slices.Contains(append(o.Users, system, os.Geteuid()), owner)
	if (!mine || careful.OthersWrite(info) && careful.Reachable(dir)) && !o.Shared {
		return invalid("can be written by another user of this machine: use ssh to an account that owns it, " +
			"or uwf remote add --trust, which lets whoever writes there run commands as you")
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
		}
	}
	return nil
}
