package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/utilagent/box"
	"github.com/united-workforce/uwf/utilagent/offlimits"
)

// Less space than this is worth a word, or stops the work: a step of an agent
// that talks much is some hundred kilobytes.
const (
	littleSpace = 200 << 20
	noSpace     = 1 << 20
)

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// home looks at the directory of everything that changes.
func (x *examination) home(context.Context) {
	dir := x.Dirs.Home
	info, err := os.Stat(dir)
	switch {
	case os.IsNotExist(err):
		x.note("home", "uwf setup", "%s does not exist yet; the first command that writes makes it", dir)
		dir = existing(dir)
	case err != nil:
		x.problem("home", "make it readable, or choose another: export UWF_HOME=DIR", "%v", err)
		return
	case !info.IsDir():
		x.problem("home", "move it away, or choose another: export UWF_HOME=DIR", "%s is not a directory", dir)
		return
	}
	if err := writable(dir); err != nil {
		x.problem("home", writeRemedy(err, dir, "UWF_HOME"), "nothing can be written in %s: %v", dir, err)
		return
	}
	if err := config.Distrust(x.Dirs); err != nil {
		x.problem("home", remedy(err, ""), "%v", err)
	}
	for _, warning := range config.Open(x.Dirs) {
		what, do, _ := strings.Cut(warning, ": ")
		x.warn("home", do, "%s", what)
	}
	if off := offlimits.New(offlimits.Options{Dir: x.Env.Dir, Home: dir, Store: x.Dirs.Store}); x.Dirs.Home != x.Env.Dir {
		if said := off.Narrows(x.Env.Dir); said != "" {
			x.note("home", "work in another directory, or choose another home: export UWF_HOME=DIR", "%s", said)
		}
	}
	x.openToOthers()
	x.pending()
	if exists(x.Dirs.Home) {
		x.ok("home", "%s", dir)
	}
}

// pending names workspaces in which git may obey what a model has written.
func (x *examination) pending() {
	found, err := box.Pending(box.SharedState(x.Dirs))
	for _, dir := range found {
		x.warn("home", "start no git there before the next step of an agent, which puts it back", "an agent was killed: what its command has changed in the .git of %s is still there", plaintext.Line(dir))
	}
	if err != nil {
		x.warn("home", "look at "+box.SharedState(x.Dirs),
			"whether commands of killed agents have changed what git runs is not known: %v", err)
	}
}

// openToOthers names what others on this machine may write, once they get to it: whoever
// writes it says what runs next.
func (x *examination) openToOthers() {
	paths := []string{x.Dirs.Store, filepath.Join(x.Dirs.Home, "runs"), x.Dirs.Sessions()}
	for _, name := range []string{"threads.yaml", "registry.yaml", "history.jsonl", "facts.jsonl"} {
		paths = append(paths, filepath.Join(x.Dirs.Home, name))
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && careful.OthersWrite(info) {
			x.warn("home", "chmod go-w "+path, "others may write %s", path)
		}
	}
}

// writable tries it: modes do not say it all (owners, read-only disks, quotas).
func writable(dir string) error {
	fsys := durable.OS()
	temp, err := fsys.WriteTemp(dir+string(os.PathSeparator)+"doctor", []byte("x"), 0o600, durable.NoFlush)
	if err != nil {
		return cause(err)
	}
	return fsys.Remove(temp)
}

// makeRoom is what to do about a full disk.
const makeRoom = "make room; `uwf cas gc` removes what no thread needs"

// writeRemedy is what to do about a directory in which nothing can be written;
// variable names another one.
func writeRemedy(err error, dir, variable string) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return makeRoom
	case errors.Is(err, syscall.EROFS):
		return fmt.Sprintf("mount it so that it can be written, or choose another: export %s=DIR", variable)
	}
	return fmt.Sprintf("become its owner (ls -ld %s), or choose another: export %s=DIR", dir, variable)
}

// cause is what the operating system says, without the name of our own file.
func cause(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// disk looks at the space.
func (x *examination) disk(context.Context) {
	dirs := []string{x.Dirs.Home, x.Dirs.Store}
	var last uint64
	for i, dir := range dirs {
		free, err := durable.FreeSpace(existing(dir))
		if err != nil {
			x.note("disk", "", "how much space there is for %s cannot be told: %v", dir, err)
			continue
		}
		if i > 0 && free == last {
			continue // one disk is told of once
		}
		last = free
		switch text := fmt.Sprintf("%s free for %s", size(free), dir); {
		case free < noSpace:
			x.problem("disk", makeRoom, "%s", text)
		case free < littleSpace:
			x.warn("disk", makeRoom, "%s", text)
		case i == 0:
			x.ok("disk", "%s", text)
		}
	}
}

// size prints bytes for people.
func size(n uint64) string {
	switch {
	case n >= 10<<30:
		return fmt.Sprintf("%d GB", n>>30)
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	}
	return fmt.Sprintf("%d kB", n>>10)
}
