// Package tools contains the tools with which a model works in a workspace: reading, writing, editing,
// listing, finding and searching files, fetching pages, running commands.
//
// Invariants:
//   - file tools never leave the workspace, by "..", absolute paths or symbolic
//     links, even if another process swaps a path under them ([os.Root]);
//   - a result is text of bounded length and valid UTF-8; an error begins with
//     "Error:" and states what to do next, because the model acts on nothing else;
//   - commands and fetches run only if the user has allowed them. Commands can be
//     restricted to writing in the workspace ([Commands]); otherwise an allowed
//     program can do anything the user can.
//
// To add a tool, call [Func] or [New], as the tools of this package do, or implement [Tool].
package tools

import (
	"bytes"
	"cmp"
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"reflect"
	"strings"

	"github.com/united-workforce/uwf/util/suggest"
)

// Effect classifies the effects of a call.
type Effect int

// Effects.
const (
	Reads   Effect = iota // changes nothing and sends nothing
	Fetches               // changes nothing, but requests can leak information
	Writes                // changes files in the workspace
	Runs                  // runs a program, which can do anything
)

// Spec describes a tool.
type Spec struct {
	Name        string
	Aliases     []string // additional accepted names, not advertised
	Description string
	// Parameters is the JSON Schema of the arguments: an object with properties, required and
	// additionalProperties false. Arguments are checked against it before a call.
	Parameters map[string]any
	Effect     Effect
	// SideBySide means that calls may run concurrently with other such calls. It applies only to tools with
	// the effect [Reads]; all other calls run one by one.
	SideBySide bool
	// Off is the reason why the tool is unavailable, with a remedy. Such a tool is not advertised; a call is
	// answered with this text.
	Off string
}

// Tool is a tool that a model can call. An error is shown to the model after "Error: ", so it must state what
// to do next; only the context's own error ends the loop.
type Tool interface {
	Spec() Spec
	Call(ctx context.Context, args map[string]any) (string, error)
}

// New returns a tool that calls a function. The arguments are decoded into A, a struct with json tags. If
// Parameters is nil, their schema is derived from A: the tag doc describes a field, enum:"a,b" lists the
// values of a string; a field is required unless it is a pointer or has omitempty. [Registry.Add] rejects a
// tool if A cannot be described this way.
func New[A any](spec Spec, call func(ctx context.Context, args A) (string, error)) Tool {
	t := funcTool[A]{spec: spec, call: call}
	if spec.Parameters == nil {
		t.spec.Parameters, t.err = schemaOf(reflect.TypeFor[A]())
	}
	return t
}

// Func is like [New] for a tool with only a name and a description. It has the effect [Runs], so agents with
// the permission read-only or edits do not offer it.
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

// object returns the schema of arguments; properties not in required are optional.
func object(required []string, properties map[string]any) map[string]any {
	return map[string]any{
		"type": "object", "properties": properties, "required": required, "additionalProperties": false,
	}
}

// All returns all tools of this package that work on files and programs, starting with those that change
// nothing. Callers can filter them by [Effect]. Tools that c does not allow are off.
func All(w *Workspace, c Commands) []Tool {
	return []Tool{
		ReadFile(w), ListDir(w), Glob(w), Grep(w),
		WriteFile(w), EditFile(w), RunCommand(w, c),
	}
}

// MaxResult bounds the bytes of a result; longer ones lose their middle. It limits the cost of a careless
// call.
const MaxResult = 30000

// Registry is the set of tools of an agent.
type Registry struct {
	tools []Tool
	names map[string]Tool // including aliases; lower case
}

// NewRegistry returns a registry with tools. Duplicate names are an error.
func NewRegistry(tools ...Tool) (*Registry, error) {
	r := &Registry{names: map[string]Tool{}}
	for _, t := range tools {
		if err := r.Add(t); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// Add adds a tool. It fails if the name is taken or the arguments cannot be described.
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

// Specs returns the available tools, in the order in which they were added.
func (r *Registry) Specs() []Spec {
	specs := make([]Spec, 0, len(r.tools))
	for _, t := range r.tools {
		if s := t.Spec(); s.Off == "" {
			specs = append(specs, s)
		}
	}
	return specs
}

// Find returns a tool by a name or alias, in any case, with or without the prefixes that models add.
func (r *Registry) Find(name string) (Tool, bool) {
	name = strings.ToLower(strings.TrimSpace(name))
	for _, prefix := range []string{"functions.", "tools.", "default_api."} {
		name = strings.TrimPrefix(name, prefix)
	}
	t, ok := r.names[name]
	return t, ok
}

// Result is the result of a call, as shown to the model.
type Result struct {
	Text   string
	Failed bool // Text begins with "Error:"
}

// Failure returns a failed result with a message for the model.
func Failure(format string, args ...any) Result {
	text := strings.TrimPrefix(fmt.Sprintf(format, args...), "Error: ")
	return Result{Text: clip("Error: "+strings.ToValidUTF8(text, "�"), MaxResult), Failed: true}
}

// Call calls a tool by the name that a model used. All failures are reported in the result; the error is only
// ctx's cause.
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
	}
	return Failure("unknown tool %q.%s Available: %s.", name, near, strings.Join(names, ", "))
}

// maxSchemaDepth bounds the nesting of a type, and so rejects recursive types.
const maxSchemaDepth = 10

// errType reports a type that cannot be used for arguments.
var errType = errors.New("cannot be described to a model")

// schemaOf returns the schema for a struct of arguments. Fields have their encoding/json names. The tag doc
// describes a field, enum lists the values of a string, separated by commas. A field is required unless it is
// a pointer or its json tag has omitempty or omitzero. Types with their own encoding and embedded structs are
// not described: such a tool gives its Parameters.
func schemaOf(t reflect.Type) (map[string]any, error) {
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("arguments are a %s, not a struct: %w", t, errType)
	}
	return typeSchema(t, maxSchemaDepth)
}

func structSchema(t reflect.Type, depth int) (map[string]any, error) {
	properties, required := map[string]any{}, []string{}
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			return nil, fmt.Errorf("%s.%s is embedded: it %w", t.Name(), f.Name, errType)
		case !f.IsExported() || name == "-" && options == "":
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
		name = cmp.Or(name, f.Name)
		properties[name] = p
		if f.Type.Kind() != reflect.Pointer && !strings.Contains(options, "omit") {
			required = append(required, name)
		}
	}
	return object(required, properties), nil
}

func typeSchema(t reflect.Type, depth int) (map[string]any, error) {
	encodes := reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) ||
		reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
	if depth == 0 || encodes {
		return nil, fmt.Errorf("%s %w", t, errType)
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

// form holds properties of a file's text that a model does not see, and that replacing the text must
// preserve.
type form struct {
	encoding charEncoding
	crlf     bool // every line ends in CR LF
}

// formOf examines the beginning of a file that is about to be replaced. An unreadable file has the zero form.
func (w *Workspace) formOf(name string, info fs.FileInfo) form {
	if info == nil || info.Size() == 0 {
		return form{}
	}
	f, _, err := w.open(name)
	if err != nil {
		return form{}
	}
	defer f.Close() // opened for reading
	start, err := io.ReadAll(io.LimitReader(f, 64<<10))
	if err != nil {
		return form{}
	}
	start = bytes.TrimSuffix(start, []byte("\r")) // its LF may be beyond the limit
	return form{encodingOf(start[:min(len(start), 8000)]), allCRLF(string(start))}
}

// apply gives a text the previous form of the file and returns a note about it.
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

// allCRLF reports whether every line of a text ends in CR LF.
func allCRLF(s string) bool {
	n := strings.Count(s, "\r\n")
	return n > 0 && n == strings.Count(s, "\n")
}

func toCRLF(s string) string { return strings.ReplaceAll(toLF(s), "\n", "\r\n") }

func toLF(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
