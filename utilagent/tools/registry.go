package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/suggest"
)

// MaxResult is how many bytes of a result a model gets to see; more is cut out
// of the middle. It bounds what one careless call costs.
const MaxResult = 30000

// Registry is the set of tools of an agent.
type Registry struct {
	tools []Tool
	names map[string]Tool // also aliases; lower case
}

// NewRegistry returns a registry. It is an error if two tools have one name.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{names: map[string]Tool{}}
	for _, t := range tools {
		if err := r.Add(t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Add adds a tool. It is an error if its name is taken, or its arguments cannot
// be described.
func (r *Registry) Add(t Tool) error {
	spec := t.Spec()
	if made, ok := t.(interface{ invalid() error }); ok && made.invalid() != nil {
		return fmt.Errorf("tool %s: %w", spec.Name, made.invalid())
	}
	for _, name := range append([]string{spec.Name}, spec.Aliases...) {
		name = strings.ToLower(name)
		if name == "" || r.names[name] != nil {
			return fmt.Errorf("tool name %q is empty or taken", name)
		}
		r.names[name] = t
	}
	r.tools = append(r.tools, t)
	return nil
}

// Specs are the tools that can be used, in the order in which they were added.
func (r *Registry) Specs() []Spec {
	specs := make([]Spec, 0, len(r.tools))
	for _, t := range r.tools {
		if s := t.Spec(); s.Off == "" {
			specs = append(specs, s)
		}
	}
	return specs
}

// Find finds a tool by the name that a model used: its own or an alias, in any
// case, with the prefixes that models put before it; behind such a prefix also by
// what other agents' tools are called, as in functions.read.
func (r *Registry) Find(name string) (Tool, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	bare := name
	for _, prefix := range []string{"functions.", "tools.", "default_api."} {
		bare = strings.TrimPrefix(bare, prefix)
	}
	t, ok := r.names[bare]
	if !ok && bare != name { // no third party's tool is called so
		t, ok = r.names[habit(bare)]
	}
	return t, ok
}

// Result is what a model gets to see of a call.
type Result struct {
	Text   string
	Failed bool // Text begins with "Error:"
}

// Failure is the result that tells a model what went wrong.
func Failure(format string, args ...any) Result {
	text := strings.TrimPrefix(fmt.Sprintf(format, args...), "Error: ")
	return Result{Text: clip("Error: "+strings.ToValidUTF8(text, "�"), MaxResult), Failed: true}
}

// Call calls a tool by the name that a model used. Whatever is wrong is a
// result; the error is ctx's cause alone.
func (r *Registry) Call(ctx context.Context, name string, args map[string]any) (Result, error) {
	t, ok := r.Find(name)
	if !ok {
		return r.unknown(name), nil
	}
	spec := t.Spec()
	if spec.Off != "" {
		return Failure("%s", spec.Off), nil
	}
	args, err := normalize(spec, args)
	if err != nil {
		return Failure("%v", err), nil
	}
	text, err := t.Call(ctx, args)
	if cause := context.Cause(ctx); cause != nil {
		return Result{}, cause
	}
	if err != nil {
		return Failure("%v", err), nil
	}
	return Result{Text: clip(strings.ToValidUTF8(text, "�"), MaxResult)}, nil
}

func (r *Registry) unknown(name string) Result {
	var names []string
	for _, s := range r.Specs() {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return Failure("unknown tool %q. There are no tools here: answer in text.", name)
	}
	near := ""
	if n := suggest.Nearest(name, names, 1); len(n) > 0 {
		near = fmt.Sprintf(" Did you mean %s?", n[0])
	} else if meant := habit(name); slices.Contains(names, meant) {
		near = fmt.Sprintf(" Did you mean %s?", meant)
	}
	return Failure("unknown tool %q.%s Available: %s.", name, near, strings.Join(names, ", "))
}

// habit is our name of what other agents' tools call so. Alone they are no aliases:
// a third party may want to use them, and their arguments are others.
func habit(name string) string {
	switch strings.ToLower(name) {
	case "shell", "terminal", "exec", "execute", "execute_command", "exec_command", "run_shell_command", "run_terminal_cmd", "sh", "cmd":
		return "run_command"
	case "read", "view", "view_file", "open_file", "cat", "read_many_files":
		return "read_file"
	case "write", "create_file", "create", "save_file":
		return "write_file"
	case "edit", "str_replace", "str_replace_editor", "str_replace_based_edit_tool", "replace", "replace_in_file", "search_replace", "multi_edit", "apply_patch":
		return "edit_file"
	case "search", "rg", "ripgrep", "codebase_search", "search_file_content":
		return "grep"
	case "find", "file_search":
		return "glob"
	case "dir", "tree", "list", "list_directory":
		return "list_dir"
	case "fetch", "browse", "curl", "http_get", "webfetch":
		return "fetch_url"
	}
	return ""
}
