// Package tools holds what a model may do to a workspace: read, write, edit,
// list, find and search files, fetch pages, run commands.
//
// Invariants:
//   - file tools never leave the workspace, by "..", absolute paths or symbolic
//     links, also when another process swaps a path under them ([os.Root]);
//   - a result is text of bounded length and valid UTF-8; one that begins with
//     "Error:" says what to do next, because the model acts on nothing else;
//   - commands and fetches run only where a person has allowed them. Commands can
//     be kept from writing elsewhere ([Commands]); else an allowed program may do
//     what the user may do.
//
// A third party adds a tool with one call of [Func] or [New], or by implementing
// [Tool].
// The exported API is provisional until the other own agents are built on it.
package tools

import (
	"bytes"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/suggest"
)

// Effect is what a call can do.
type Effect int

// The effects.
const (
	Reads   Effect = iota // changes nothing, and tells nobody
	Fetches               // changes nothing, but what it asks for can tell others what it knows
	Writes                // changes files of the workspace
	Runs                  // runs a program: anything
)

// Spec describes a tool.
type Spec struct {
	Name        string
	Aliases     []string // names that are accepted, but not offered
	Description string
	// Parameters is the JSON Schema of the arguments: an object with properties, required and
	// additionalProperties false. Arguments are also checked against it before a call.
	Parameters map[string]any
	Effect     Effect
	// SideBySide says that calls may run in parallel with those of other such tools. It applies
	// only to tools whose effect is [Reads]; all other calls run one after the other.
	SideBySide bool
	// Off says why the tool cannot be used here, and what would change that. A
	// tool that is off is not offered; a call is answered with this text.
	Off string
}

// Tool is something that a model can call. An error is shown to the model after
// "Error: ", so it must say what to do next; only the context's own error ends
// the loop.
type Tool interface {
	Spec() Spec
	Call(ctx context.Context, args map[string]any) (string, error)
}

// New makes a tool of a function. The arguments are decoded into A, a struct
// with json tags. Without Parameters their schema is made from A: the tag doc
// tells a model what a field is, enum:"a,b" lists the values of a string; a field
// is required unless it is a pointer or says omitempty. [Registry.Add] refuses a
// tool whose A cannot be described so.
func New[A any](spec Spec, call func(ctx context.Context, args A) (string, error)) Tool {
	t := funcTool[A]{spec: spec, call: call}
	if spec.Parameters == nil {
		t.spec.Parameters, t.err = schemaOf(reflect.TypeFor[A]())
	}
	return t
}

// Func is [New] for a tool with only a name and a description. The tool counts as one that may
// do anything ([Runs]), so an agent with the permission read-only or edits is not offered it.
func Func[A any](name, description string, call func(ctx context.Context, args A) (string, error)) Tool {
	return New(Spec{Name: name, Description: description, Effect: Runs}, call)
}

type funcTool[A any] struct {
	spec Spec
	err  error // A cannot be described
	call func(ctx context.Context, args A) (string, error)
}

func (t funcTool[A]) invalid() error { return t.err }

func (t funcTool[A]) Spec() Spec { return t.spec }

func (t funcTool[A]) Call(ctx context.Context, args map[string]any) (string, error) {
	b, err := json.Marshal(args)
	if err != nil {
		return "", fmt.Errorf("arguments of %s: %w", t.spec.Name, err)
	}
	var a A
	if err := json.Unmarshal(b, &a); err != nil {
		return "", fmt.Errorf("arguments of %s: %w. Call it again with arguments of the declared types", t.spec.Name, err)
	}
	return t.call(ctx, a)
}

// object is the schema of arguments; properties that are not in required are
// optional.
func object(required []string, properties map[string]any) map[string]any {
	return map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
}

func property(typ, description string) map[string]any {
	return map[string]any{"type": typ, "description": description}
}

// All returns every tool of this package that works on files and programs, first those that
// change nothing. A caller that allows less filters them by [Effect]; what Commands do not
// allow is off.
func All(w *Workspace, c Commands) []Tool {
	return []Tool{
		ReadFile(w), ListDir(w), Glob(w), Grep(w),
		WriteFile(w), EditFile(w), RunCommand(w, c),
	}
}

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

// maxSchemaDepth bounds how deep a type may be nested; one that holds itself is
// deeper than anything.
const maxSchemaDepth = 10

// errType is for a type that arguments cannot have.
var errType = errors.New("cannot be described to a model")

// schemaOf describes a struct as the arguments of a tool. Fields are named as in
// encoding/json. The tag doc tells the model what a field is, enum lists the
// values of a string, separated by commas. A field is required unless it is a
// pointer or its json tag says omitempty or omitzero. A type that reads itself
// from text is a string.
func schemaOf(t reflect.Type) (map[string]any, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("arguments are a %s, not a struct: %w", t, errType)
	}
	return structSchema(t, maxSchemaDepth)
}

func structSchema(t reflect.Type, depth int) (map[string]any, error) {
	properties, required := map[string]any{}, []string{}
	for _, f := range reflect.VisibleFields(t) {
		name, optional, ok := jsonName(f)
		if !ok || len(f.Index) > 1 && !promoted(t, f) {
			continue
		}
		p, err := typeSchema(f.Type, depth-1)
		if err != nil {
			return nil, fmt.Errorf("%s.%s: %w", t.Name(), f.Name, err)
		}
		if doc := f.Tag.Get("doc"); doc != "" {
			p["description"] = doc
		}
		if values := f.Tag.Get("enum"); values != "" {
			p["enum"] = strings.Split(values, ",")
		}
		properties[name] = p
		if !optional {
			required = append(required, name)
		}
	}
	return object(required, properties), nil
}

// jsonName is the name of a field in JSON; false if it has none there.
func jsonName(f reflect.StructField) (name string, optional, ok bool) {
	tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	if !f.IsExported() || tag == "-" && options == "" || f.Anonymous && tag == "" && isStruct(f.Type) {
		return "", false, false
	}
	optional = f.Type.Kind() == reflect.Pointer
	for _, o := range strings.Split(options, ",") {
		optional = optional || o == "omitempty" || o == "omitzero"
	}
	if tag == "" {
		tag = f.Name
	}
	return tag, optional, true
}

// promoted tells whether a field of an embedded struct counts as one of t.
func promoted(t reflect.Type, f reflect.StructField) bool {
	for i := range f.Index[:len(f.Index)-1] {
		outer := t.FieldByIndex(f.Index[:i+1])
		tag, _, _ := strings.Cut(outer.Tag.Get("json"), ",")
		if tag != "" || !isStruct(outer.Type) {
			return false
		}
	}
	return true
}

func isStruct(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Pointer && t.Elem().Kind() == reflect.Struct
}

var (
	textType = reflect.TypeFor[encoding.TextUnmarshaler]()
	jsonType = reflect.TypeFor[json.Unmarshaler]()
)

func typeSchema(t reflect.Type, depth int) (map[string]any, error) {
	if depth == 0 {
		return nil, fmt.Errorf("%s is nested too deep: %w", t, errType)
	}
	switch {
	case reflect.PointerTo(t).Implements(textType):
		return map[string]any{"type": "string"}, nil
	case reflect.PointerTo(t).Implements(jsonType):
		return map[string]any{}, nil // it reads what it likes
	}
	switch t.Kind() {
	case reflect.Pointer:
		return typeSchema(t.Elem(), depth)
	case reflect.String:
		return map[string]any{"type": "string"}, nil
	case reflect.Bool:
		return map[string]any{"type": "boolean"}, nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return map[string]any{"type": "integer"}, nil
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}, nil
	case reflect.Struct:
		return structSchema(t, depth)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return map[string]any{}, nil
		}
	case reflect.Slice, reflect.Array:
		items, err := typeSchema(t.Elem(), depth-1)
		return map[string]any{"type": "array", "items": items}, err
	case reflect.Map:
		if t.Key().Kind() == reflect.String {
			values, err := typeSchema(t.Elem(), depth-1)
			return map[string]any{"type": "object", "additionalProperties": values}, err
		}
	}
	return nil, fmt.Errorf("%s %w", t, errType)
}

// form is what the text of a file does not show to a model. Whoever replaces the
// text keeps it.
type form struct {
	encoding charEncoding
	crlf     bool // every line ends in CR LF
}

// formOf looks at the beginning of a file that is about to be replaced. One that
// cannot be read has no form to keep.
func (w *Workspace) formOf(name string, info fs.FileInfo) form {
	if info == nil || info.Size() == 0 {
		return form{}
	}
	f, _, err := w.open(name)
	if err != nil {
		return form{}
	}
	defer f.Close() // it is only read from
	start, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return form{}
	}
	start = bytes.TrimSuffix(start, []byte("\r")) // its LF may be behind the limit
	return form{encodingOf(start[:min(len(start), 8000)]), allCRLF(string(start))}
}

// apply gives a text the form of the file before it, and says so.
func (f form) apply(text string) (formed, note string) {
	if f.crlf && !strings.Contains(text, "\r\n") && strings.Contains(text, "\n") {
		text, note = toCRLF(text), " Its lines end in CR LF, as before."
	}
	switch {
	case f.encoding == withBOM && !strings.HasPrefix(text, bom):
		text, note = bom+text, note+" It begins with a byte order mark, as before."
	case f.encoding.wide():
		note += " It was UTF-16, and is UTF-8 now."
	}
	return text, note
}

// allCRLF tells whether every line of a text ends in CR LF.
func allCRLF(s string) bool {
	n := strings.Count(s, "\r\n")
	return n > 0 && n == strings.Count(s, "\n")
}

func toCRLF(s string) string { return strings.ReplaceAll(toLF(s), "\n", "\r\n") }

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
