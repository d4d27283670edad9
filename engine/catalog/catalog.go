// Package catalog finds, reads and stores workflows, for whoever starts threads. A
// person names one by a file, by a name of the project or the registry, or by a hash.
//
// A workflow file may be anybody's: it came with a repository, or a model wrote it. So
// it is read through its project, which no link leads out of, and only if it is a file;
// a project's files count only if they are this user's or the system's; and messages
// that quote a file hold no secret of this user's.
//
// Errors are *protocol.Error, *workflow.Problems, which names every fault of a file
// with its place, or those of the store and the registry.
package catalog

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/secret"
)

// Catalog is the workflows that can be named from a directory. Build it with [Of], or
// as a literal where store and registry are to be opened only when they are needed. It
// looks at a project once, and is not for concurrent use.
type Catalog struct {
	Env      env.Env // Dir is where names and relative paths are meant from
	Store    func(context.Context) (cas.Store, error)
	Registry func() (heads.Registry, error)
	Secrets  func() *secret.Set // are hidden in what is said of a file
	// Fetch returns the text of a workflow that lies elsewhere, and the name of its file; ok
	// is false for what is no such address. nil: nothing is fetched.
	Fetch func(ctx context.Context, address string) (text []byte, file string, ok bool, err error)
	// Note is told, as a line, what a person should know of a workflow though nothing
	// is wrong with it, and Warn what is; nil: nobody is told.
	Note, Warn func(text string)
	// Templates are names that people may take for workflows: uwf workflow new makes one of them.
	Templates []string

	reading  []string                    // the files that are being read, the outermost first
	known    map[string]known            // that the outermost file runs, by path and project
	below    int                         // how deep others lie inside the file that is being read
	projects map[string][]workflow.Found // by the directory that was looked from
}

// Of returns the catalog of an engine, whose Heads must be a [heads.Registry] too, as
// files are.
func Of(e *engine.Engine) *Catalog {
	return &Catalog{
		Env:   e.Env,
		Store: func(context.Context) (cas.Store, error) { return e.Store, nil },
		Registry: func() (heads.Registry, error) {
			if r, ok := e.Heads.(heads.Registry); ok {
				return r, nil
			}
			return nil, errors.New("these heads keep no names of workflows")
		},
		Secrets: func() *secret.Set {
			return secret.NewSet(config.Secrets(e.Dirs.Config(), e.Dirs.DotEnv(), e.Env)...)
		},
		Note: e.Warn, Warn: e.Warn,
	}
}

func (c *Catalog) note(format string, args ...any) {
	if c.Note != nil {
		c.Note(fmt.Sprintf(format, args...))
	}
}

// Put reads a workflow file, stores it durably, and registers its name.
func (c *Catalog) Put(ctx context.Context, path string) (protocol.WorkflowPut, error) {
	var none protocol.WorkflowPut
	def, err := c.Read(ctx, path)
	if err != nil {
		return none, err
	}
	s, err := c.Store(ctx)
	if err != nil {
		return none, err
	}
	release, err := cas.Hold(ctx, s) // until the registry names it
	if err != nil {
		return none, err
	}
	defer func() { _ = release() }() // the end of the process gives it back, too
	h, err := c.store(ctx, def)
	if err != nil {
		return none, err
	}
	x, err := c.Registry()
	if err != nil {
		return none, err
	}
	if err := x.Register(ctx, def.Name, h); err != nil {
		return none, fmt.Errorf("register workflow %q: %w", def.Name, err)
	}
	return protocol.WorkflowPut{Name: def.Name, Hash: h}, nil
}

// Start makes a thread of the workflow that a person names; start is what it is to do
// where, and with which inputs. No
// collector comes between storing the workflow and the thread. check, if there is one,
// may refuse before the thread is made, as [engine.Engine.CheckFirst], or complete it.
func (c *Catalog) Start(ctx context.Context, e *engine.Engine, name string, start protocol.Start, o engine.StartOptions, check func(*protocol.Start) error) (protocol.ThreadStarted, error) {
	var none protocol.ThreadStarted
	release, err := cas.Hold(ctx, e.Store)
	if err != nil {
		return none, err
	}
	defer func() { _ = release() }() // the end of the process gives it back, too
	why := ""
	if start.Workflow, why, err = c.find(ctx, name); err != nil {
		return none, err
	}
	if why != "" {
		if err := e.Origins().MustTrust(ctx, start.Workflow, why); err != nil {
			return none, err
		}
	}
	if check != nil {
		if err := check(&start); err != nil {
			return none, err
		}
	}
	thread, err := e.Start(ctx, start, o)
	return protocol.ThreadStarted{Workflow: start.Workflow, Thread: thread}, err
}

// Name is the first name in the registry that points at h; "" if none does.
func (c *Catalog) Name(ctx context.Context, h cas.Hash) string {
	x, err := c.Registry()
	if err != nil {
		return ""
	}
	names, err := x.Workflows(ctx)
	if err != nil {
		return ""
	}
	for _, n := range names {
		if n.Hash == h && n.Problem == "" {
			return n.Name
		}
	}
	return ""
}

// The origins of a workflow, in the original's words.
const (
	OriginProject  = "local"
	OriginRegistry = "global"
)

// List returns the files of the project, and what is registered unless a file hides
// it.
func (c *Catalog) List(ctx context.Context) ([]protocol.WorkflowItem, error) {
	found, err := c.Project()
	if err != nil {
		return nil, err
	}
	x, err := c.Registry()
	if err != nil {
		return nil, err
	}
	registered, err := x.Workflows(ctx)
	if err != nil {
		return nil, err
	}
	items := []protocol.WorkflowItem{}
	local := map[string]bool{}
	for _, f := range found {
		local[f.Name] = true
		items = append(items, protocol.WorkflowItem{Name: f.Name, Hash: "(local)", Origin: OriginProject, Path: c.Shown(f.Path)})
	}
	for _, n := range registered {
		switch {
		case n.Problem != "" && c.Warn != nil:
			c.Warn(fmt.Sprintf("registry.yaml: the name %q %s: nothing can be started by it", n.Name, n.Problem))
		case n.Problem == "" && !local[n.Name]:
			items = append(items, protocol.WorkflowItem{Name: n.Name, Hash: string(n.Hash), Origin: OriginRegistry})
		}
	}
	return items, nil
}

func notFound(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeNotFound, Message: message, Hints: hints}
}

func invalid(message string, hints ...string) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: message, Hints: hints}
}
