// Package catalog finds, reads and stores workflows. A user refers to a workflow by file, by name in the
// project or the registry, or by hash.
//
// Workflow files are untrusted: they may come with a repository or from a model. So they are opened through
// their project, which no symbolic link can leave, and only if they are regular files. A project's files
// count only if they belong to this user or to the system. Messages that quote a file contain none of the
// user's secrets.
//
// Errors are *protocol.Error, *workflow.Problems, which lists every problem of a file with its position, or
// errors of the store and the registry.
package catalog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/trust"
	"github.com/united-workforce/uwf/moderator/discover"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/moderator/workflowtext"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/project"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/secret"
)

// Catalog holds the workflows that can be referred to from a directory. Create it with [Of], or as a literal
// to open the store and the registry lazily. It reads a project once, and it is not safe for concurrent use.
type Catalog struct {
	Env      env.Env // names and relative paths are resolved from its Dir
	Store    func(context.Context) (cas.Store, error)
	Registry func() (heads.Registry, error)
	Secrets  func() *secret.Set // removed from messages about files
	// Fetch returns the text and the file name of a remote workflow; ok is false if the address is not one.
	// If nil, nothing is fetched.
	Fetch func(ctx context.Context, address string) (text []byte, file string, ok bool, err error)
	// Note, if not nil, is called with remarks about a valid workflow, one line each; Warn with warnings.
	Note, Warn func(text string)
	// Templates are the templates of uwf workflow new, which users may mistake for workflows.
	Templates []string

	reading  []string                    // files being read, outermost first
	known    map[string]known            // files that the outermost file runs, by path and project
	below    int                         // nesting depth inside the file being read
	projects map[string][]discover.Found // by starting directory
}

// Of returns the catalog of an engine, whose Heads must also be a [heads.Registry]. The default, which uses
// files, is one.
func Of(e *engine.Engine) *Catalog {
	return &Catalog{
		Env:   e.Reader.Env,
		Store: func(context.Context) (cas.Store, error) { return e.Reader.Store, nil },
		Registry: func() (heads.Registry, error) {
			if r, ok := e.Reader.Heads.(heads.Registry); ok {
				return r, nil
			}
			return nil, errors.New("this home stores no workflow names")
		},
		Secrets: e.Reader.Secrets,
		Note:    e.Reader.Warn, Warn: e.Reader.Warn,
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
	release, err := cas.LockShared(ctx, s) // held until the name is registered
	if err != nil {
		return none, err
	}
	defer func() { _ = release() }() // also released when the process ends
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

// Start creates a thread of a workflow, given by file, name or hash. The garbage collector cannot run between
// storing the workflow and creating the thread. Errors are *protocol.Error.
func (c *Catalog) Start(ctx context.Context, e *engine.Engine, name string, start protocol.Start,
	o engine.StartOptions) (_ protocol.ThreadStarted, err error) {
	defer fault.Coded(&err)
	var none protocol.ThreadStarted
	release, err := cas.LockShared(ctx, e.Reader.Store)
	if err != nil {
		return none, err
	}
	defer func() { _ = release() }() // also released when the process ends
	why := ""
	if start.Workflow, why, err = c.find(ctx, name); err != nil {
		return none, err
	}
	if why != "" {
		if err := e.Origins().MustTrust(ctx, start.Workflow, why); err != nil {
			return none, err
		}
	}
	w, err := cas.Read[protocol.Workflow](ctx, e.Reader.Store, start.Workflow)
	if err == nil {
		err = e.Origins().MustGrant(ctx, start.Workflow, w, name)
	}
	if err != nil {
		return none, err
	}
	if o.Check != nil {
		if err := o.Check(&start); err != nil {
			return none, err
		}
	}
	thread, err := e.Start(ctx, start, o)
	return protocol.ThreadStarted{Workflow: start.Workflow, Thread: thread}, err
}

// Name returns the first name in the registry for h, or "".
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

// Origins of a workflow, named as in the original uwf.
const (
	OriginProject  = "local"
	OriginRegistry = "global"
)

// List returns the project's workflow files and the registered workflows, except those that a file hides.
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
		items = append(items, protocol.WorkflowItem{Name: f.Name, Hash: "(local)", Origin: OriginProject,
			Path: c.Shown(f.Path)})
	}
	for _, n := range registered {
		switch {
		case n.Problem != "" && c.Warn != nil:
			c.Warn(fmt.Sprintf("registry.yaml: the name %q %s, so no thread can start from it", n.Name, n.Problem))
		case n.Problem == "" && !local[n.Name]:
			items = append(items, protocol.WorkflowItem{Name: n.Name, Hash: string(n.Hash), Origin: OriginRegistry})
		}
	}
	return items, nil
}

func notFound(format string, args ...any) *protocol.Error {
	return fault.New(protocol.CodeNotFound, format, args...)
}

func invalid(format string, args ...any) *protocol.Error {
	return fault.New(protocol.CodeInvalid, format, args...)
}

// Definition finds a workflow like [Catalog.Find] and returns its definition, but stores nothing.
func (c *Catalog) Definition(ctx context.Context, name string) (workflow.Definition, error) {
	def, h, _, err := c.look(ctx, name)
	if err == nil && h != "" {
		return c.Stored(ctx, h)
	}
	return def, err
}

// Stored reads a stored workflow with the schemas of its roles.
func (c *Catalog) Stored(ctx context.Context, h cas.Hash) (workflow.Definition, error) {
	s, err := c.Store(ctx)
	if err != nil {
		return workflow.Definition{}, err
	}
	w, err := cas.Read[protocol.Workflow](ctx, s, h)
	if err != nil {
		return workflow.Definition{}, err
	}
	def, err := workflowtext.Restore(w, func(h protocol.Hash) (any, error) {
		n, err := s.Get(ctx, h)
		if err != nil {
			return nil, err
		}
		return n.Value()
	})
	if err != nil {
		return workflow.Definition{}, fmt.Errorf("workflow %s: %w", h, err)
	}
	return def, nil
}

// Hash returns the hash of a definition without storing it.
func (c *Catalog) Hash(ctx context.Context, def workflow.Definition) (cas.Hash, error) {
	_, h, err := c.nodes(ctx, def)
	return h, err
}

// Project lists the project's workflows. It reports ignored files, once.
func (c *Catalog) Project() ([]discover.Found, error) {
	return c.projectOfDir(c.Env.Dir)
}

// projectOfDir does the same as [Catalog.Project] for any directory.
func (c *Catalog) projectOfDir(dir string) ([]discover.Found, error) {
	if found, ok := c.projects[dir]; ok {
		return found, nil
	}
	found, ignored, err := discover.Workflows(project.From(c.Env, dir))
	if err != nil {
		return nil, fmt.Errorf("find project workflows: %w", err)
	}
	if c.projects == nil {
		c.projects = map[string][]discover.Found{}
	}
	c.projects[dir] = found
	for _, i := range ignored {
		c.note("ignored %s: it %s", plaintext.Line(c.Shown(i.Path)), i.Reason)
	}
	return found, nil
}

// readProject reads a workflow of the project. It reports every time that the workflow hides a registered
// one, since another user may have added it.
func (c *Catalog) readProject(ctx context.Context, f discover.Found) (def workflow.Definition, hides bool, err error) {
	if def, err = c.readIn(ctx, f.Path, f.Project); err != nil {
		return def, false, err
	}
	x, err := c.Registry()
	if err != nil {
		return def, false, err
	}
	registered, err := x.Workflow(ctx, f.Name)
	switch {
	case errors.Is(err, heads.ErrNoWorkflow):
		return def, false, nil
	case err != nil:
		return def, false, err // the user would not be asked about a workflow that it hides
	}
	if _, h, err := c.nodes(ctx, def); err != nil || h != registered {
		c.note("%s is %s; to run the registered workflow, use its hash %s", f.Name, plaintext.Line(c.Shown(f.Path)),
			registered)
		hides = true
	}
	return def, hides, nil
}

// maxUses limits the nesting of workflows that run other workflows.
const maxUses = 10

// used returns the workflow that a role of the file by runs, given by path relative to that file, by name or
// by hash. Names are resolved in the file's own project and in the registry, so the result doesn't depend on
// the working directory. Nothing is stored. A file cannot run itself, not even indirectly.
func (c *Catalog) used(ctx context.Context, name, by, project string) (workflow.Used, error) {
	if len(c.reading) == 0 {
		c.known = map[string]known{}
	}
	c.reading = append(c.reading, by)
	defer func() { c.reading = c.reading[:len(c.reading)-1] }()
	if isPath(name) {
		path := filepath.Join(filepath.Dir(by), filepath.FromSlash(name))
		return c.once(ctx, path, project, func() (workflow.Definition, error) { return c.readIn(ctx, path, project) })
	}
	f, h, err := c.named(ctx, name, discover.Around(by))
	if err == nil && f != nil {
		return c.once(ctx, f.Path, f.Project, func() (workflow.Definition, error) {
			def, _, err := c.readProject(ctx, *f)
			return def, err
		})
	}
	if err != nil {
		return workflow.Used{}, err
	}
	def, err := c.Stored(ctx, h) // a stored workflow cannot refer to files
	return workflow.Used{Hash: h, Definition: def}, err
}

// known is a file that another file runs, with the nesting depth inside it.
type known struct {
	used  workflow.Used
	err   error
	below int
}

// once reads a file only once for all files that run it. Otherwise a few files that all run each other, level
// by level, would take exponential time.
func (c *Catalog) once(ctx context.Context, path, project string,
	read func() (workflow.Definition, error)) (workflow.Used, error) {
	if err := c.circle(path); err != nil {
		return workflow.Used{}, err
	}
	key := safeopen.Resolved(path) + "\n" + project
	file, ok := c.known[key]
	if !ok && len(c.reading) <= maxUses {
		outside := c.below
		c.below = 0
		def, err := read()
		if file.err = err; err == nil {
			file.used.Definition = def
			file.used.Hash, file.err = c.Hash(ctx, def)
		}
		file.below, c.below = c.below, outside
		c.known[key] = file
	}
	if len(c.reading)+file.below > maxUses {
		return workflow.Used{}, invalid("workflows are nested more than %d levels deep", maxUses)
	}
	c.below = max(c.below, file.below+1)
	return file.used, file.err
}

// circle returns an error if the file is already being read.
func (c *Catalog) circle(path string) error {
	i := slices.IndexFunc(c.reading, func(p string) bool { return safeopen.Resolved(p) == safeopen.Resolved(path) })
	if i < 0 {
		return nil
	}
	var names []string
	for _, p := range append(slices.Clone(c.reading[i:]), path) {
		names = append(names, c.Shown(p))
	}
	return invalid("workflows call each other in a cycle: %s", strings.Join(names, " → "))
}

// UsedCommands lists, one per line, the commands of the workflows that a definition runs, with the variables
// that they receive or that are missing from e.
func (c *Catalog) UsedCommands(ctx context.Context, settings protocol.Config, def workflow.Definition,
	e env.Env) ([]string, error) {
	return c.usedCommands(ctx, settings, def, e, map[protocol.Hash]bool{})
}

func (c *Catalog) usedCommands(ctx context.Context, settings protocol.Config, def workflow.Definition, e env.Env,
	seen map[protocol.Hash]bool) (lines []string, err error) {
	for _, h := range def.Workflow.Uses() {
		if seen[h] {
			continue
		}
		seen[h] = true
		var used workflow.Definition
		if i := slices.IndexFunc(def.Uses, func(u workflow.Used) bool { return u.Hash == h }); i >= 0 {
			used = def.Uses[i].Definition
		} else if used, err = c.Stored(ctx, h); err != nil {
			return nil, err
		}
		below, err := c.usedCommands(ctx, settings, used, e, seen)
		if err != nil {
			return nil, err
		}
		for _, line := range append(trust.CommandsOf(settings, h, used.Workflow, &e), below...) {
			lines = append(lines, plaintext.Line(used.Name)+": "+line)
		}
	}
	return lines, nil
}
