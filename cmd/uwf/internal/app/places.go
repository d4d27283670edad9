package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Creators are the commands that make a home or a store where there is none, or
// say themselves what is missing. All others only read: for them a directory that
// is named on the command line and is not there is a slip.
func Creators() []string {
	return []string{
		"run", "workflow put", "thread start", "thread import", "remote add", "pull", "fetch", "config set", "config edit", "setup", "doctor", "import-original",
		"cas init", "cas put", "cas put-text", "cas schema put", "cas import",
	}
}

// WithCreators tells the commands that make directories from the others.
func (a *App) WithCreators(commands []*ucli.Command, paths ...string) {
	for _, c := range commands {
		for _, path := range paths {
			if path == c.Name {
				a.creating(c)
			}
			if group, rest, _ := strings.Cut(path, " "); group == c.Name && rest != "" {
				a.WithCreators(c.Subcommands, rest)
			}
		}
	}
}

// creating marks a command and all below it.
func (a *App) creating(c *ucli.Command) {
	for _, sub := range c.Subcommands {
		a.creating(sub)
	}
	if action := c.Action; action != nil {
		c.Action = func(cc *ucli.Context) error {
			a.creates = true
			return action(cc)
		}
	}
}

// checkHome reports a home that is no directory, and one that was named on the
// command line, is not there, and would not be made.
func (a *App) checkHome(dirs home.Dirs) error {
	info, err := os.Stat(dirs.Home)
	switch {
	case err == nil && !info.IsDir():
		return cmdline.Invalid(fmt.Sprintf("the home %s is not a directory", dirs.Home), "name a directory: --home DIR, or UWF_HOME=DIR")
	case errors.Is(err, syscall.ENOTDIR):
		return cmdline.Invalid(fmt.Sprintf("the home %s is not a directory: something above it is a file", dirs.Home), "name a directory: --home DIR, or UWF_HOME=DIR")
	case errors.Is(err, fs.ErrNotExist) && a.Flags.Home != "" && !a.creates:
		return cmdline.NotFound("there is no home at "+dirs.Home,
			"uwf --home "+plaintext.Word(a.Flags.Home)+" setup", "uwf --home "+plaintext.Word(a.Flags.Home)+" workflow put <file.yaml>, or any other command that writes, makes it")
	}
	if info, err := os.Stat(dirs.Store); err == nil && !info.IsDir() {
		return cmdline.Invalid(fmt.Sprintf("the store %s is not a directory", dirs.Store), "name a directory: --store DIR, or OCAS_HOME=DIR")
	}
	return nil
}

// checkStore is checkHome for a store that --store names.
func (a *App) checkStore(dirs home.Dirs, exists bool) error {
	if exists || a.Flags.Store == "" || a.creates {
		return nil
	}
	return cmdline.NotFound("there is no store at "+dirs.Store, "without --store it is $OCAS_HOME, else cas in the home", "uwf cas init --store "+plaintext.Word(a.Flags.Store))
}

// Hide keeps secrets out of an error: it may quote a file that is not what it was
// taken for, or an agent.
func (a *App) Hide(e *protocol.Error) {
	known := a.Secrets()
	e.Message = known.Hide(e.Message)
	e.Hints = slices.Clone(e.Hints)
	for i, hint := range e.Hints {
		e.Hints[i] = a.keepRemote(known.Hide(hint))
	}
}

// MissingStore adds to the error about a node that is not there that there is no
// store at all.
func (a *App) MissingStore(e *protocol.Error) {
	dirs, err := home.Find(a.Env, a.Flags.Home, a.Flags.Store)
	if err != nil || a.Bundle != nil || !errors.Is(e, cas.ErrNotFound) {
		return
	}
	if _, err := os.Stat(dirs.Store); errors.Is(err, fs.ErrNotExist) {
		e.Hints = append(e.Hints, "there is no store at "+dirs.Store+": is OCAS_HOME right?")
	}
}
