// Package yamlstruct decodes YAML to Go structs by their json tags. It reports problems with their positions,
// and suggestions for misspelled keys or words. It decodes the rest anyway, so that all problems of a file
// are reported at once.
//
// A field's tag "is" contains the allowed words, separated by "|", or "span" for a duration.
package yamlstruct

import (
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Decoder decodes one file.
type Decoder struct {
	Of string // what is decoded, for messages: "the config"
	// Report receives a problem; remedy can be "".
	Report func(at yamldoc.Pos, remedy, format string, args ...any)
	// Text returns the text of a text or number scalar. It returns false after reporting a problem that starts with
	// where. lazy means that the value is below a key accepted by Lazy. If Text is nil, the text is used as written.
	Text func(n *yamldoc.Node, where string, lazy bool) (text string, ok bool)
	// Lazy reports whether a struct key is lazy; nil means none is.
	Lazy func(key string) bool
	// Before can replace a value's node before decoding. After can check the decoded value, passed as a
	// pointer; its node is the original one. Both can be nil.
	Before func(n *yamldoc.Node, into reflect.Type) *yamldoc.Node
	After  func(n *yamldoc.Node, into any, path string)

	lazy   bool
	fields map[reflect.Type]map[string]reflect.StructField // by [Fields]
}

// Decode decodes a node into the value that into points to. Null counts as missing.
func (d *Decoder) Decode(n *yamldoc.Node, into any) {
	d.fields = map[reflect.Type]map[string]reflect.StructField{}
	d.value(n, reflect.ValueOf(into).Elem(), "")
}

// value decodes a node; path is its key path, such as "providers.openai".
func (d *Decoder) value(n *yamldoc.Node, v reflect.Value, path string) {
	if n.Tag != "" {
		d.Report(n.Pos, "", "%smust not have a tag", d.where(path))
		return
	}
	if n.Kind == yamldoc.Scalar && n.Scalar == nil {
		return
	}
	written := n
	if d.Before != nil {
		n = d.Before(n, v.Type())
	}
	switch v.Kind() {
	case reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		d.value(n, target.Elem(), path)
		v.Set(target)
		return
	case reflect.Interface:
		v.Set(reflect.ValueOf(n.Value()))
	case reflect.Struct:
		d.object(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
	default:
		d.scalar(n, v, path)
	}
	if d.After != nil {
		d.After(written, v.Addr().Interface(), path)
	}
}

func (d *Decoder) where(path string) string {
	if path == "" {
		return d.Of + " "
	}
	return path + " "
}

// Join returns the path of a key.
func Join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (d *Decoder) object(n *yamldoc.Node, v reflect.Value, path string) {
	if n.Kind != yamldoc.Mapping {
		d.Report(n.Pos, "", "%smust be a mapping", d.where(path))
		return
	}
	fields := d.fields[v.Type()]
	if fields == nil { // once for all agents of a config
		fields = Fields(v.Type())
		d.fields[v.Type()] = fields
	}
	for _, e := range n.Entries {
		field, ok := fields[e.Key]
		if !ok {
			d.unknownKey(e, slices.Sorted(maps.Keys(fields)), path)
			continue
		}
		outer := d.lazy
		d.lazy = outer || d.Lazy != nil && d.Lazy(e.Key)
		to := v.FieldByIndex(field.Index)
		d.value(e.Value, to, Join(path, e.Key))
		d.lazy = outer
		d.allowed(e.Value, to, field.Tag.Get("is"), Join(path, e.Key))
	}
}

// Fields maps the keys of a struct to its fields, including those of embedded structs.
func Fields(t reflect.Type) map[string]reflect.StructField {
	fields := map[string]reflect.StructField{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); !f.Anonymous && f.IsExported() {
			fields[name] = f
		}
	}
	return fields
}

// allowed checks a text, or each of several, against the tag "is" of its field. Empty means the default.
func (d *Decoder) allowed(n *yamldoc.Node, v reflect.Value, is, path string) {
	switch {
	case is == "":
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			at := n
			if i < len(n.Items) { // unless Before made the list
				at = n.Items[i]
			}
			d.allowed(at, v.Index(i), is, path)
		}
	case v.Kind() == reflect.Map:
		for _, e := range n.Entries {
			if item := v.MapIndex(reflect.ValueOf(e.Text)); item.IsValid() { // otherwise the map has a problem
				d.allowed(e.Value, item, is, Join(path, e.Text))
			}
		}
	case v.String() == "":
	case is == "span":
		if span, err := time.ParseDuration(v.String()); err != nil || span <= 0 {
			d.Report(n.Pos, "such as 90s, 30m or 2h", "%s must be a length of time with a unit", path)
		}
	default:
		words, remedy := strings.Split(is, "|"), ""
		if slices.Contains(words, v.String()) {
			return
		}
		if len(suggest.Nearest(v.String(), words, 1)) > 0 {
			remedy = Nearest(v.String(), words)
		}
		d.Report(n.Pos, remedy, "%s must be %s", path, Quoted(words, " or "))
	}
}

func (d *Decoder) unknownKey(e yamldoc.Entry, known []string, path string) {
	in := ""
	if path != "" {
		in = " in " + path
	}
	if e.Text == "" || isSuspicious(e.Text) {
		d.Report(e.Pos, "", "unknown key%s", in)
		return
	}
	d.Report(e.Pos, Nearest(e.Text, known), "unknown key %q%s", e.Text, in)
}

// isSuspicious reports whether a text doesn't look like a name, because it might be a secret in place of a
// key.
func isSuspicious(s string) bool {
	const longest = 40
	return len(s) > longest || strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && r != '_'
	})
}

func (d *Decoder) mapping(n *yamldoc.Node, v reflect.Value, path string) {
	if n.Kind != yamldoc.Mapping {
		d.Report(n.Pos, "", "%smust be a mapping", d.where(path))
		return
	}
	m := reflect.MakeMap(v.Type())
	for _, e := range n.Entries {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(e.Value, item, Join(path, e.Text))
		m.SetMapIndex(reflect.ValueOf(e.Text), item)
	}
	v.Set(m)
}

func (d *Decoder) list(n *yamldoc.Node, v reflect.Value, path string) {
	if n.Kind != yamldoc.Sequence {
		d.Report(n.Pos, "", "%smust be a list", d.where(path))
		return
	}
	s := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		d.value(item, s.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(s)
}

func (d *Decoder) scalar(n *yamldoc.Node, v reflect.Value, path string) {
	want := ""
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		span, err := time.ParseDuration(n.Text)
		v.SetInt(int64(span))
		want = or(n.Kind == yamldoc.Scalar && err == nil && span >= 0, "a length of time with a unit, such as 200ms or 1m30s")
	case v.Kind() == reflect.String:
		d.text(n, v, path)
	case v.Kind() == reflect.Bool:
		b, ok := n.Scalar.(bool)
		v.SetBool(b)
		want = or(ok, "true or false")
	case v.CanInt():
		i, ok := n.Scalar.(int64)
		v.SetInt(i)
		want = or(ok && i >= 0, "a whole number, at least 0")
	case v.CanFloat():
		f, ok := n.Scalar.(float64)
		if i, whole := n.Scalar.(int64); whole {
			f, ok = float64(i), true
		}
		v.SetFloat(f)
		want = or(ok && f >= 0 && !math.IsInf(f, 0), "a number, at least 0")
	default:
		panic(fmt.Sprintf("yamlstruct: no decoding for %s", v.Type()))
	}
	if want != "" {
		d.Report(n.Pos, "", "%smust be %s", d.where(path), want)
	}
}

// text decodes a string. A number becomes the text as written, so that names and keys need no quotes.
func (d *Decoder) text(n *yamldoc.Node, v reflect.Value, path string) {
	switch n.Scalar.(type) {
	case string, int64, float64:
	default:
		d.Report(n.Pos, "", "%smust be a text", d.where(path))
		return
	}
	text, ok := n.Text, true
	if d.Text != nil {
		text, ok = d.Text(n, d.where(path), d.lazy)
	}
	if ok {
		v.SetString(text)
	}
}

// or returns "" if ok, else want.
func or(ok bool, want string) string {
	if ok {
		return ""
	}
	return want
}

// Nearest suggests a known word for a misspelled one.
func Nearest(word string, known []string) string {
	if near := suggest.Nearest(word, known, 2); len(near) > 0 {
		return "did you mean " + Quoted(near, " or ") + "?"
	}
	if len(known) == 0 {
		return ""
	}
	const most = 12
	known = slices.Sorted(slices.Values(known))
	return "known: " + Quoted(known[:min(len(known), most)], ", ")
}

// Quoted formats a list of quoted words.
func Quoted(words []string, sep string) string {
	q := make([]string, len(words))
	for i, w := range words {
		q[i] = fmt.Sprintf("%q", w)
	}
	return strings.Join(q, sep)
}
