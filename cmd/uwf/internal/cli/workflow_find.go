package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/index"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/jsonschema/library"
	"github.com/united-workforce/uwf/util/suggest"
)

// workflow finds the workflow that a person means, storing a file's content if
// it is one. In this order: a hash; a file (has a slash or ends in .yaml or
// .yml); a file of the project (.workflows/, .workflow/); the registry; a
// unique prefix of a hash is not accepted, because names come first.
func (a *app) workflow(ctx context.Context, arg string) (cas.Hash, error) {
	arg = strings.TrimSpace(arg)
	if protocol.Hash(arg).Valid() {
		return a.workflowByHash(ctx, protocol.Hash(arg))
	}
	if isPath(arg) {
		return a.storeFile(ctx, a.path(arg))
	}
	found, err := workflow.Discover(a.env.Dir)
	if err != nil {
		return "", fmt.Errorf("look for project workflows: %w", err)
	}
	for _, f := range found {
		if f.Name == arg {
			return a.storeFile(ctx, f.Path)
		}
	}
	x, err := a.index()
	if err != nil {
		return "", err
	}
	h, err := x.Workflow(ctx, arg)
	if !errors.Is(err, index.ErrNoWorkflow) {
		return h, err
	}
	return "", a.unknownWorkflow(ctx, arg, found)
}

func (a *app) workflowByHash(ctx context.Context, h cas.Hash) (cas.Hash, error) {
	s, err := a.store(ctx)
	if err != nil {
		return "", err
	}
	_, err = cas.Read[protocol.Workflow](ctx, s, h)
	var kind *cas.TypeError
	switch {
	case errors.Is(err, cas.ErrNotFound):
		return "", notFound(fmt.Sprintf("workflow not found: %s", h), "uwf workflow list")
	case errors.As(err, &kind):
		return "", invalid(fmt.Sprintf("node %s is not a workflow", h), "uwf workflow list")
	}
	return h, err
}

func (a *app) unknownWorkflow(ctx context.Context, arg string, found []workflow.Found) error {
	var names []string
	for _, f := range found {
		names = append(names, f.Name)
	}
	if x, err := a.index(); err == nil {
		if registered, err := x.Workflows(ctx); err == nil {
			for _, n := range registered {
				if n.Problem == "" {
					names = append(names, n.Name)
				}
			}
		}
	}
	hints := []string{"uwf workflow list", "uwf workflow put <file.yaml>"}
	if near := suggest.Nearest(arg, names, 3); len(near) > 0 {
		hints = append([]string{"did you mean " + strings.Join(near, ", ") + "?"}, hints...)
	}
	return notFound(fmt.Sprintf("workflow not found: %s", arg), hints...)
}

func isPath(arg string) bool {
	return strings.ContainsAny(arg, `/\`) || strings.HasSuffix(arg, ".yaml") || strings.HasSuffix(arg, ".yml")
}

// path makes an argument absolute.
func (a *app) path(arg string) string {
	if filepath.IsAbs(arg) {
		return filepath.Clean(arg)
	}
	return filepath.Join(a.env.Dir, arg)
}

// nearFiles are hints at a file that somebody may have meant.
func (a *app) nearFiles(path string) []string {
	hints := []string{"uwf workflow list"}
	if _, err := os.Stat(filepath.Dir(path)); err != nil {
		return append([]string{"there is no directory " + a.shown(filepath.Dir(path))}, hints...)
	}
	if near := cmdline.NearFile(a.env.Dir, path); near != "" {
		at := a.shown(near)
		if !filepath.IsAbs(at) && !strings.HasPrefix(at, ".") {
			at = "./" + at
		}
		hints = append([]string{"did you mean " + at + "?"}, hints...)
	}
	return hints
}

// maxWorkflowFile bounds what is read before the parser's own bounds apply.
const maxWorkflowFile = 16 << 20

// readWorkflow reads and checks a file. Errors name the file as the user would;
// what the author should know although nothing is wrong is said here, once.
func (a *app) readWorkflow(ctx context.Context, path string) (workflow.Definition, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return workflow.Definition{}, notFound(fmt.Sprintf("file not found: %s", a.shown(path)), a.nearFiles(path)...)
	case err != nil:
		return workflow.Definition{}, err
	case info.IsDir():
		return workflow.Definition{}, invalid(fmt.Sprintf("%s is a directory, not a workflow file", a.shown(path)), "name the file in it: "+filepath.Join(a.shown(path), "<name>.yaml"))
	case info.Size() > maxWorkflowFile:
		return workflow.Definition{}, invalid(fmt.Sprintf("%s is too large for a workflow file (%d bytes)", a.shown(path), info.Size()))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return workflow.Definition{}, err
	}
	if !isText(data) {
		return workflow.Definition{}, invalid(fmt.Sprintf("%s is not a text file, so it is no workflow", a.shown(path)), "uwf workflow new <name> writes one to begin with")
	}
	def, err := workflow.Parse(workflow.Source{
		File: a.shown(path), Path: path, Dir: filepath.Dir(path), Data: data,
		Node: func(h protocol.Hash) (any, error) { return a.payload(ctx, h) },
	})
	for _, notice := range def.Notices {
		a.say("note: %s", notice)
	}
	return def, err
}

// isText tells whether a file may be a text: git looks at as much of it.
func isText(data []byte) bool {
	head := data[:min(len(data), 8000)]
	return !bytes.ContainsRune(head, 0)
}

// payload is the content of any node, for workflow files that refer to one.
func (a *app) payload(ctx context.Context, h protocol.Hash) (any, error) {
	s, err := a.store(ctx)
	if err != nil {
		return nil, err
	}
	n, err := s.Get(ctx, h)
	if errors.Is(err, cas.ErrNotFound) {
		return nil, errors.New("the store has no such node")
	}
	if err != nil {
		return nil, err
	}
	return n.Value()
}

// shown is a path as short as it can be said from here.
func (a *app) shown(path string) string {
	if rel, err := filepath.Rel(a.env.Dir, path); err == nil && !strings.HasPrefix(rel, "..") {
		return rel
	}
	return path
}

// storeFile stores the workflow in a file, durably, and returns its hash.
func (a *app) storeFile(ctx context.Context, path string) (cas.Hash, error) {
	def, err := a.readWorkflow(ctx, path)
	if err != nil {
		return "", err
	}
	return a.storeWorkflow(ctx, def)
}

func (a *app) storeWorkflow(ctx context.Context, def workflow.Definition) (cas.Hash, error) {
	s, err := a.store(ctx)
	if err != nil {
		return "", err
	}
	b := cas.NewBatch(s, a.env.Now, library.Judge)
	stored, err := def.Store(func(role string, schema any) (protocol.Hash, error) {
		h, err := b.AddSchema(ctx, schema)
		if err != nil {
			return "", fmt.Errorf("schema of role %q: %w", role, err)
		}
		return h, nil
	})
	if err != nil {
		return "", err
	}
	h, err := b.Add(ctx, stored)
	if err != nil {
		return "", err
	}
	if err := b.Commit(ctx); err != nil {
		return "", fmt.Errorf("store workflow %q: %w", def.Name, err)
	}
	return h, nil
}
