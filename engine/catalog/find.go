package catalog

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator/discover"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/project"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/suggest"
)

// Find returns the hash of a workflow. If name is a file, Find stores its content; the garbage collector can
// remove that until a thread uses it (see [Catalog.Start]). Find tries in this order: a hash; a file
// (contains a slash or ends in .yaml or .yml); a file of the project (.workflows/, .workflow/); the registry;
// a hash in other case, or a unique prefix of one.
func (c *Catalog) Find(ctx context.Context, name string) (cas.Hash, error) {
	h, _, err := c.find(ctx, name)
	return h, err
}

// find is like [Catalog.Find]. It also returns why a user must confirm the workflow before its commands run,
// or "" if they chose it themselves.
func (c *Catalog) find(ctx context.Context, name string) (h cas.Hash, why string, err error) {
	def, h, why, err := c.look(ctx, name)
	if err == nil && h == "" {
		h, err = c.store(ctx, def)
	}
	return h, why, err
}

// look returns the definition of a workflow in a file, or the hash of a stored one. why is as in [Catalog.find].
func (c *Catalog) look(ctx context.Context, name string) (def workflow.Definition, h cas.Hash, why string, err error) {
	name = strings.TrimSpace(name)
	if isPath(name) {
		def, err = c.Read(ctx, name)
		return def, "", "", err
	}
	f, h, err := c.named(ctx, name, c.Env.Dir)
	if f == nil || err != nil {
		return def, h, "", err
	}
	def, hides, err := c.readProject(ctx, *f)
	if hides {
		why = "is " + plaintext.Line(c.Shown(f.Path)) + ", which takes precedence over the registered one"
	}
	return def, "", why, err
}

// named finds a workflow that is not given by path: a file of the project around dir, or the hash of a stored one.
func (c *Catalog) named(ctx context.Context, name, dir string) (f *discover.Found, h cas.Hash, err error) {
	if h := protocol.Hash(name); h.Valid() {
		h, err = c.byHash(ctx, h)
		return nil, h, err
	}
	found, err := c.projectOfDir(dir)
	if err != nil {
		return nil, "", err
	}
	if i := slices.IndexFunc(found, func(f discover.Found) bool { return f.Name == name }); i >= 0 {
		return &found[i], "", nil
	}
	if h, err = c.registered(ctx, name); errors.Is(err, heads.ErrNoWorkflow) {
		h, err = c.byPrefix(ctx, name, found)
	}
	return nil, h, err
}

// registered finds a workflow by its name in the registry.
func (c *Catalog) registered(ctx context.Context, name string) (cas.Hash, error) {
	x, err := c.Registry()
	if err != nil {
		return "", err
	}
	h, err := x.Workflow(ctx, name)
	if err != nil {
		return "", err
	}
	return h, c.leadsToWorkflow(ctx, x, name, h)
}

// byPrefix finds a workflow by the prefix of its hash, in any case. Nodes of other kinds don't count.
func (c *Catalog) byPrefix(ctx context.Context, arg string, found []discover.Found) (cas.Hash, error) {
	const fewest, most = 4, 64 // minimum characters; maximum nodes to examine
	prefix := protocol.FoldCrockford(arg)
	if len(prefix) < fewest || len(prefix) > protocol.HashLen ||
		!protocol.Hash(prefix+"0000000000000"[len(prefix):]).Valid() {
		return "", c.unknown(ctx, arg, found)
	}
	s, err := c.Store(ctx)
	if err != nil {
		return "", err
	}
	var matches []string
	looked := 0
	for h, err := range s.All(ctx, prefix) {
		if err != nil {
			return "", err
		}
		if looked++; looked > most {
			return "", notFound("workflow %q is ambiguous: more than %d nodes start with it", arg, most).Because("workflow-ambiguous")
		}
		if _, err := cas.Read[protocol.Workflow](ctx, s, h); err == nil {
			matches = append(matches, string(h))
		} else if len(prefix) == protocol.HashLen {
			return c.byHash(ctx, h) // reports what is wrong with it
		}
	}
	switch len(matches) {
	case 0:
		return "", c.unknown(ctx, arg, found)
	case 1:
		return cas.Hash(matches[0]), nil
	}
	return "", suggest.Ambiguous("workflow", arg, matches)
}

// leadsToWorkflow returns an error if a registered name doesn't refer to a workflow.
func (c *Catalog) leadsToWorkflow(ctx context.Context, x heads.Registry, name string, h cas.Hash) error {
	s, err := c.Store(ctx)
	if err != nil {
		return err
	}
	_, err = cas.Read[protocol.Workflow](ctx, s, h)
	if errors.Is(err, cas.ErrNotFound) || errors.As(err, new(*cas.TypeError)) {
		lost := fault.New(protocol.CodeCorrupt, "%s: the name %q does not refer to a workflow: %v", place(ctx, x, name), name, err)
		lost.Err = err
		return lost.Because("name-leads-nowhere")
	}
	return nil // other errors are reported when the workflow is used
}

// place describes where the registry stores a name.
func place(ctx context.Context, x heads.Registry, name string) string {
	if p, ok := x.(interface {
		WorkflowPlace(ctx context.Context, name string) string
	}); ok {
		return p.WorkflowPlace(ctx, name)
	}
	return "the registry"
}

func (c *Catalog) byHash(ctx context.Context, h cas.Hash) (cas.Hash, error) {
	s, err := c.Store(ctx)
	if err != nil {
		return "", err
	}
	_, err = cas.Read[protocol.Workflow](ctx, s, h)
	var kind *cas.TypeError
	switch {
	case errors.Is(err, cas.ErrNotFound):
		return "", notFound("workflow not found: %s", h).Because("no-such-workflow")
	case errors.As(err, &kind):
		return "", invalid("node %s is not a workflow", h).Because("no-such-workflow")
	}
	return h, err
}

func (c *Catalog) unknown(ctx context.Context, arg string, found []discover.Found) error {
	var names []string
	for _, f := range found {
		names = append(names, f.Name)
	}
	if x, err := c.Registry(); err == nil {
		if registered, err := x.Workflows(ctx); err == nil {
			for _, n := range registered {
				if n.Problem == "" {
					names = append(names, n.Name)
				}
			}
		}
	}
	file, template := c.fileNamed(arg), ""
	if file == "" && slices.Contains(c.Templates, arg) {
		template = arg
	}
	return notFound("workflow not found: %s", arg).Because("workflow-unknown", "file", file, "template", template, "names",
		strings.Join(suggest.Nearest(arg, names, 3), ", "))
}

// fileNamed returns the path of a workflow file with the given name in the current directory, or "". It is
// only suggested: users must give the path themselves to run a file.
func (c *Catalog) fileNamed(name string) string {
	for _, ending := range []string{".yaml", ".yml"} {
		info, err := os.Stat(filepath.Join(c.Env.Dir, name+ending))
		if err == nil && info.Mode().IsRegular() {
			return "./" + name + ending
		}
	}
	return ""
}

func isPath(arg string) bool {
	return strings.ContainsAny(arg, `/\`) || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml")
}

// noFile returns the error for a missing file, with a suggestion.
func (c *Catalog) noFile(path string) error {
	none := notFound("file not found: %s", c.Shown(path))
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return none.Because("no-such-file", "directory", c.Shown(filepath.Dir(path)))
	}
	near := suggest.File(c.Env.Dir, path)
	if near != "" {
		near = c.Shown(near)
		if !filepath.IsAbs(near) && !strings.HasPrefix(near, ".") {
			near = "./" + near
		}
	}
	return none.Because("no-such-file", "near", near)
}

// payload returns the content of any node, for workflow files that refer to one.
func (c *Catalog) payload(ctx context.Context, h protocol.Hash) (any, error) {
	s, err := c.Store(ctx)
	if err != nil {
		return nil, err
	}
	n, err := s.Get(ctx, h)
	if errors.Is(err, cas.ErrNotFound) {
		return nil, errors.New("no such node in the store")
	}
	if err != nil {
		return nil, err
	}
	return n.Value()
}

// Shown returns the shortest form of a path, relative to the current directory if possible.
func (c *Catalog) Shown(path string) string {
	for _, here := range []string{c.Env.Dir, safeopen.Resolved(c.Env.Dir)} {
		if rel, err := filepath.Rel(here, path); err == nil && !strings.HasPrefix(rel, "..") {
			return rel
		}
	}
	return path
}

// store stores a workflow durably and returns its hash.
func (c *Catalog) store(ctx context.Context, def workflow.Definition) (cas.Hash, error) {
	return c.storeWith(ctx, def, map[cas.Hash]bool{})
}

// storeWith is like [Catalog.store], but skips the workflows in stored.
func (c *Catalog) storeWith(ctx context.Context, def workflow.Definition, stored map[cas.Hash]bool) (cas.Hash, error) {
	for _, used := range def.Uses {
		if stored[used.Hash] {
			continue
		}
		stored[used.Hash] = true
		if _, err := c.storeWith(ctx, used.Definition, stored); err != nil {
			return "", err
		}
	}
	b, h, err := c.nodes(ctx, def)
	if err != nil {
		return "", err
	}
	if err := b.Commit(ctx); err != nil {
		return "", fmt.Errorf("store workflow %q: %w", def.Name, err)
	}
	return h, nil
}

// nodes returns the nodes of a workflow, not yet written, and its hash.
func (c *Catalog) nodes(ctx context.Context, def workflow.Definition) (*cas.Batch, cas.Hash, error) {
	s, err := c.Store(ctx)
	if err != nil {
		return nil, "", err
	}
	b := cas.NewBatch(s, c.Env.Now)
	w, err := def.Store(func(_ string, schema any) (protocol.Hash, error) { return b.AddSchema(ctx, schema) })
	if err != nil {
		return nil, "", err
	}
	h, err := b.Add(ctx, w)
	return b, h, err
}

// maxFile is the maximum size of a file in bytes; the parser has stricter limits of its own.
const maxFile = 16 << 20

// file is the content of a file.
type file struct {
	data []byte
	dir  *os.Root // directory of the file, opened through its project
}

// Read reads and checks the file at path. Errors show the path as the user would write it. Remarks for the
// author of a valid workflow are reported once.
func (c *Catalog) Read(ctx context.Context, path string) (workflow.Definition, error) {
	if c.Fetch != nil {
		if text, name, ok, err := c.Fetch(ctx, path); ok || err != nil {
			if err != nil {
				return workflow.Definition{}, err
			}
			return c.parse(ctx, workflow.Source{File: path, Path: name, Data: text})
		}
	}
	path = c.Env.Path(path)
	project, err := c.projectOf(path)
	if err != nil {
		return workflow.Definition{}, err
	}
	return c.readIn(ctx, path, project)
}

// readIn does the same as [Catalog.Read] for a file of a project.
func (c *Catalog) readIn(ctx context.Context, path, project string) (workflow.Definition, error) {
	file, err := c.open(path, project)
	if err != nil {
		return workflow.Definition{}, err
	}
	defer func() { _ = file.dir.Close() }() // it was only opened for reading
	if !isText(file.data) {
		return workflow.Definition{}, invalid("%s is not a text file",
			c.Shown(path)).Because("no-workflow-file")
	}
	src := workflow.Source{File: c.Shown(path), Path: path, Dir: file.dir, Data: file.data}
	src.Workflow = func(name string) (workflow.Used, error) { return c.used(ctx, name, path, project) }
	return c.parse(ctx, src)
}

// parse parses a workflow and reports remarks for its author.
func (c *Catalog) parse(ctx context.Context, src workflow.Source) (workflow.Definition, error) {
	src.Node = func(h protocol.Hash) (any, error) { return c.payload(ctx, h) }
	def, err := workflow.Parse(src)
	var problems *workflow.Problems
	if len(def.Notices) == 0 && !errors.As(err, &problems) {
		return def, err
	}
	secrets := c.Secrets()
	for _, notice := range def.Notices {
		c.note("%s", plaintext.Line(secrets.Hide(notice)))
	}
	if problems != nil {
		for i, p := range problems.List {
			p.Message, p.Excerpt, p.Remedy = secrets.Hide(p.Message), secrets.Hide(p.Excerpt), secrets.Hide(p.Remedy)
			problems.List[i] = p
		}
	}
	return def, err
}

// projectOf returns the directory that the workflow file at path must not lead out of. It is a repository
// that contains path, the nearest one if path leads out of none. Without a repository, it is the project of
// the file's real directory.
func (c *Catalog) projectOf(path string) (string, error) {
	nearest := ""
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			if within(dir, path) == "" {
				return dir, nil
			}
			nearest = cmp.Or(nearest, dir)
		}
		if filepath.Dir(dir) == dir {
			break
		}
	}
	if nearest != "" {
		return nearest, nil
	}
	return project.From(c.Env, filepath.Dir(path)).Root()
}

// open reads a file of a project. It doesn't trust that path is a regular file.
func (c *Catalog) open(path, project string) (file, error) {
	var none file
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return none, c.noFile(path)
	case err != nil:
		if _, err := os.Stat(path); errors.Is(err, syscall.ELOOP) {
			return none, invalid("%s is a symbolic link in a loop", c.Shown(path)).Because("no-workflow-file")
		}
		return none, fmt.Errorf("resolve symbolic links in %s: %w", c.Shown(path), err)
	}
	name, dir := within(project, real), within(project, filepath.Dir(path))
	if name == "" || dir == "" {
		return none, invalid("%s is a symbolic link out of %s, to %s", c.Shown(path), c.Shown(project),
			real).Because("link-out-of-project")
	}
	root, err := os.OpenRoot(project)
	if err != nil {
		return none, err
	}
	defer func() { _ = root.Close() }() // it was only opened for reading
	data, err := safeopen.ReadFileIn(root, name, maxFile)
	var odd *safeopen.NotFileError
	var big *safeopen.TooBigError
	switch {
	case errors.As(err, &odd) && odd.Mode.IsDir():
		return none, invalid("%s is a directory, not a workflow file", c.Shown(path)).Because("workflow-is-directory", "path",
			filepath.Join(c.Shown(path), "<name>.yaml"))
	case errors.As(err, &odd):
		odd.Path = c.Shown(path)
		return none, invalid("%v; expected a workflow file", odd).Because("no-workflow-file")
	case errors.As(err, &big):
		return none, invalid("%s is too large for a workflow file (more than %d bytes)", c.Shown(path), big.Max)
	case err != nil:
		return none, err
	}
	from, err := root.OpenRoot(dir)
	return file{data, from}, err
}

// within resolves path and returns it relative to dir, or "" if it is not below dir.
func within(dir, path string) string {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return ""
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return ""
	}
	rest, err := filepath.Rel(dir, path)
	if err != nil || !filepath.IsLocal(rest) {
		return ""
	}
	return rest
}

// isText reports whether data looks like text. Like git, it examines the first 8,000 bytes.
func isText(data []byte) bool {
	head := data[:min(len(data), 8000)]
	return !bytes.ContainsRune(head, 0)
}
