// Package app is one invocation of uwf: its streams and flags, the home, the store and the
// engine that it works with, what a person may call a thread or a step, and how results are
// printed. The packages of commands stand on it.
package app

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/templates"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/util/terminal"
	"github.com/united-workforce/uwf/utilagent/box"
)

// CasProgram is how hints name the store's commands.
const CasProgram = "uwf cas"

// StoreCLI are the store's commands, once.
func (a *App) StoreCLI() *ocascli.CLI {
	if a.CAS == nil {
		a.CAS = &ocascli.CLI{
			Env: a.Env, Program: CasProgram, Dirs: a.Dirs,
			Format: func() render.Format { return a.Format(nil) },
			Place:  a.Address,
			Files:  keptFiles{a},
		}
	}
	return a.CAS
}

// App is one invocation of the program.
type App struct {
	Env   env.Env
	Flags Globals
	// Status is the exit status of a command that did its work but ended in a
	// state that scripts must see, such as suspended.
	Status protocol.Code
	// Exit is the exit status of a program that was run in this one's place.
	Exit int
	// TextErrors: errors are text only, because they are meant for a model.
	TextErrors bool
	WorksAt    string      // the remote that --remote names
	projects   sync.Map    // whose settings were told
	Steps      atomic.Bool // the command runs agents, or looks at what would run
	creates    bool        // the command makes a home or store that is not there
	Takes, Yes bool        // a workflow from elsewhere is to be run, and is taken without a question
	shown      atomic.Pointer[Display]
	warned     sync.Map  // what was told once
	exposed    sync.Once // warns of keys that others can read
	unheld     sync.Once // whether commands are not confined is said
	diagnose   sync.Once
	diagnosis  box.Diagnosis // of this machine, once it was asked for
	catalog    *catalog.Catalog
	FS         *fsstore.Store
	Heads      *fileheads.Heads
	CAS        *ocascli.CLI // the commands of the store
	Bundle     *bundled     // in the place of home and store; nil: none
}

// Globals are the flags that every command knows.
type Globals struct {
	Format string
	Home   string
	Store  string
	Quiet  bool
	Debug  bool
}

// Format is the format of results: what was asked for, else the command's own,
// else text on a terminal and JSON for a program.
func (a *App) Format(own *render.Format) render.Format {
	if f, err := render.ParseFormat(a.Flags.Format); err == nil {
		return f
	}
	if own != nil {
		return *own
	}
	if a.OnTerminal() {
		return render.Text
	}
	return render.JSON
}

// Print writes a command's result.
func (a *App) Print(value any, text func(io.Writer) error) error {
	return render.Print(a.Env.Stdout, a.Format(nil), value, text)
}

// Dirs are the directories in force. Errors: see [App.checkHome].
func (a *App) Dirs() (home.Dirs, error) {
	if a.Bundle != nil {
		return a.Bundle.dirs(), nil
	}
	dirs, err := home.Find(a.Env, a.Flags.Home, a.Flags.Store)
	if err != nil {
		return dirs, err
	}
	return dirs, a.checkHome(dirs)
}

// Store opens the node store; it need not exist.
func (a *App) Store(ctx context.Context) (cas.Store, error) {
	if a.Bundle != nil {
		return a.Bundle.file, nil
	}
	if a.FS != nil {
		return a.FS, nil
	}
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	s, err := fsstore.Open(ctx, dirs.Store, fsstore.Options{Home: dirs.Home})
	if err != nil {
		return nil, ocascli.StoreError(err, CasProgram)
	}
	if err := a.checkStore(dirs, s.Exists()); err != nil {
		return nil, err
	}
	a.FS = s
	return s, nil
}

// HoldStore keeps the collector away while nodes are put that the index does not
// name yet.
func (a *App) HoldStore(ctx context.Context) (release func(), err error) {
	s, err := a.Store(ctx)
	if err != nil {
		return nil, err
	}
	done, err := cas.Hold(ctx, s)
	if err != nil {
		return nil, err
	}
	return func() { _ = done() }, nil // the end of the process gives it back, too
}

// Index is the heads, facts and registry of the home.
func (a *App) Index() (*fileheads.Heads, error) {
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	if a.Heads == nil {
		// Beside the store of a newer uwf the index, too, is not ours to touch.
		if a.Bundle == nil {
			if err := fsstore.Readable(dirs.Store); err != nil {
				return nil, ocascli.StoreError(err, CasProgram)
			}
		}
		a.Heads = fileheads.Open(dirs.Home, durable.OS())
	}
	return a.Heads, nil
}

// Engine puts the parts together. The config is read only when a step needs it.
func (a *App) Engine(ctx context.Context, p engine.Progress) (*engine.Engine, error) {
	dirs, err := a.Dirs()
	if err != nil {
		return nil, err
	}
	sweepEdit(dirs)
	s, err := a.Store(ctx)
	if err != nil {
		return nil, err
	}
	x, err := a.Index()
	if err != nil {
		return nil, err
	}
	with := &engine.Engine{
		Reader: status.Reader{
			Dirs: dirs, FS: durable.OS(), Store: s, Heads: x,
			Warn: func(text string) { a.warnOnce(plaintext.Line(text)) },
		},
		Progress: p,
		PutBack: func() (string, error) {
			said, err := box.RecoverAll(context.Background(), a.Env.Now, dirs.Box(), box.SharedState(dirs))
			return strings.Join(said, "; it "), err
		},
		Hidden: func(c protocol.Config, dir string) []string { return a.hidden(dirs, c, dir) },
	}
	if a.Flags.Debug {
		with.Log = decisions(a.Env.Stderr)
	}
	with.Run, with.Hold = a.runner(with), a.hold(with)
	if err := with.Configure(a.Env); err != nil {
		return nil, err
	}
	with.Loaded = func(project string, err error) {
		a.Steps.Store(true)
		if err != nil {
			return
		}
		a.exposed.Do(func() { a.warnExposed(dirs) })
		if _, said := a.projects.LoadOrStore(project, true); !said && project != "" {
			a.Say("uwf: with the settings of %s", plaintext.Line(a.Workflows().Shown(project)))
		}
	}
	a.logEvents(with)
	a.tellOthers(ctx, with)
	return with, nil
}

// warnOnce tells a warning, the first time that it is given: each step of an agent gives
// its own again.
func (a *App) warnOnce(text string) {
	a.SayOnce(text, "uwf: warning: "+text)
}

// SayOnce tells what is the same whenever it is about the same.
func (a *App) SayOnce(about, text string) {
	if _, told := a.warned.LoadOrStore(about, true); !told {
		a.Say("%s", text)
	}
}

// warnExposed warns of keys that others can read.
func (a *App) warnExposed(dirs home.Dirs) {
	for _, warning := range config.Exposed(dirs.Config(), dirs.DotEnv()) {
		a.Say("uwf: warning: %s", warning)
	}
}

// EditLock is held while the config is open in an editor.
func EditLock(dirs home.Dirs) string { return filepath.Join(dirs.Locks(), "edit.lock") }

// sweepEdit removes the copy of an editor that was killed.
func sweepEdit(dirs home.Dirs) {
	if _, err := os.Lstat(dirs.Edit()); err != nil {
		return
	}
	if lock, err := durable.TryLock(EditLock(dirs)); err == nil {
		_ = errors.Join(os.RemoveAll(dirs.Edit()), lock.RemoveAndUnlock()) // otherwise the next start does it
	}
}

// OnTerminal reports whether a person reads the results, in a pager or not.
func (a *App) OnTerminal() bool { return terminal.Is(a.Env.Stdout) }

// Workflows are those that can be named from here.
func (a *App) Workflows() *catalog.Catalog {
	if a.catalog == nil {
		a.catalog = &catalog.Catalog{
			Env: a.Env, Store: a.Store, Secrets: a.Secrets, Fetch: a.fetched,
			Registry: func() (heads.Registry, error) { return a.Index() },
			Note:     func(text string) { a.Say("note: %s", text) },
			Warn:     func(text string) { a.Say("uwf: warning: %s", text) },

			Templates: templates.Names(),
		}
	}
	return a.catalog
}

// Secrets are those of the home that is in force, as far as it has any.
func (a *App) Secrets() *secret.Set {
	dirs, err := home.Find(a.Env, a.Flags.Home, a.Flags.Store)
	if err != nil {
		return secret.NewSet()
	}
	return secret.NewSet(config.Secrets(dirs.Config(), dirs.DotEnv(), a.Env)...)
}

// Width is that of the terminal to which results go; 0 if they go elsewhere.
func (a *App) Width() int {
	columns, _ := terminal.Size(a.Env.Stdout)
	return columns
}
