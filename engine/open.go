package engine

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/project"
)

// Options for [Open]. The zero value works.
type Options struct {
	Home, Store string // the directories; "": as the environment names them, see package home
}

// Open returns an engine on the home of a process, as uwf itself uses it: the nodes
// and the heads are files, .env adds to the environment, and agents come from
// config.yaml. Nothing is written, and nothing need exist yet.
//
// It is for any program but uwf: process.Exe is the uwf on PATH, which agents and
// [Engine.Background] start; "" if there is none, and then Background fails.
func Open(ctx context.Context, process env.Env, o Options) (*Engine, error) {
	process.Exe, _ = proc.LookPath("uwf", process.Dir, process.Environ)
	dirs, err := home.Find(process, o.Home, o.Store)
	if err != nil {
		return nil, err
	}
	nodes, err := fsstore.Open(ctx, dirs.Store, fsstore.Options{Home: dirs.Home})
	if err != nil {
		return nil, fault.Of(err)
	}
	e := &Engine{Reader: status.Reader{Dirs: dirs, FS: durable.OS(), Store: nodes, Heads: fileheads.Open(dirs.Home, durable.OS())}}
	return e, e.Configure(process)
}

// Configure gives an engine its environment and its config: those of a process, with the .env
// and the config.yaml of the engine's home, and the settings of the project in which the
// process is. It fails if another user could have written them. A .env that may not be read is
// an error only for operations that need the config: a role may read threads although the keys
// are hidden from it.
func (e *Engine) Configure(process env.Env) error {
	if err := config.Distrust(e.Dirs); err != nil {
		return err
	}
	with, unread := config.LoadDotEnv(e.Dirs.DotEnv(), process)
	if unread != nil && !errors.Is(unread, fs.ErrPermission) {
		return unread
	}
	e.Env, e.Given = with, process.Environ
	e.load = func(ctx context.Context, project string) (protocol.Config, error) {
		if unread != nil {
			return protocol.Config{}, unread
		}
		c, err := config.Load(ctx, e.Dirs.Config(), with)
		if err == nil {
			c, err = config.WithProject(c, project)
		} else {
			known := *fault.Of(err)
			known.Machine, err = true, &known
		}
		if e.Loaded != nil {
			e.Loaded(project, err)
		}
		return c, err
	}
	e.Config = func(ctx context.Context) (protocol.Config, error) { return e.load(ctx, e.Project) }
	found, err := e.projectOf(process.Dir)
	e.Project = found
	return err
}

// InProject returns an engine with the settings of the project that a directory is in:
// those of a thread are its directory's, wherever somebody types.
func (e *Engine) InProject(dir string) (*Engine, error) {
	if e.load == nil { // its Config was set by the caller
		return e, nil
	}
	found, err := e.projectOf(dir)
	if errors.Is(err, fs.ErrNotExist) { // the step reports that the directory is gone
		found, err = "", nil
	}
	if err != nil || found == e.Project {
		return e, err
	}
	with := *e
	with.Project = found
	with.Config = func(ctx context.Context) (protocol.Config, error) { return e.load(ctx, found) }
	return &with, nil
}

// projectOf looks for the settings of the project that a directory is in.
func (e *Engine) projectOf(dir string) (string, error) {
	found, ignored, err := ProjectConfig(e.Env, dir, e.Dirs)
	if err != nil {
		return "", fault.Of(err)
	}
	for _, i := range ignored {
		e.warn(fmt.Sprintf("ignored %s: it %s", i.Path, i.Why))
	}
	return found, nil
}

// ProjectConfig is the path of the settings of the project that a directory is in; "":
// there are none. The user's own config is none, though it lies in a directory of the
// same name. ignored are files that do not count, and why.
func ProjectConfig(process env.Env, dir string, dirs home.Dirs) (path string, ignored []project.Ignored, err error) {
	path, ignored, err = project.From(process, dir).File(config.ProjectFile())
	if err != nil || path == "" {
		return "", ignored, err
	}
	a, err := os.Stat(path)
	if err != nil {
		return "", ignored, err
	}
	if b, err := os.Stat(dirs.Config()); err == nil && os.SameFile(a, b) {
		return "", nil, nil
	}
	return path, ignored, nil
}
