package config

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// decoder fills Go values from nodes, by their json tags. What does not fit is
// reported with its place; the rest is still read, so that all problems of a
// file come at once.
type decoder struct {
	*report
	env  env.Env
	lazy bool // within a value that is expanded when it is used
}

func (d *decoder) decode(n *yamldoc.Node, into any) {
	d.value(n, reflect.ValueOf(into).Elem(), "")
}

// value decodes a node; path is its place, such as "providers.openai". Null is
// as good as absent.
func (d *decoder) value(n *yamldoc.Node, v reflect.Value, path string) {
	if n.Tag != "" {
		d.add(n.Pos, "", "%smust not have a tag", where(path))
		return
	}
	if n.Kind == yamldoc.Scalar && n.Scalar == nil {
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		d.value(n, target.Elem(), path)
		v.Set(target)
	case reflect.Struct:
		d.object(n, v, path)
	case reflect.Map:
		d.mapping(n, v, path)
	case reflect.Slice:
		d.list(n, v, path)
		if network, ok := v.Addr().Interface().(*protocol.Network); ok {
			d.network(n, *network, path)
		}
	default:
		d.scalar(n, v, path)
	}
}

func where(path string) string {
	if path == "" {
		return "the config "
	}
	return path + " "
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func (d *decoder) object(n *yamldoc.Node, v reflect.Value, path string) {
	if n.Kind != yamldoc.Mapping {
		d.add(n.Pos, "", "%smust be a mapping", where(path))
		return
	}
	fields := fieldsOf(v.Type())
	for _, e := range n.Entries {
		i, ok := fields[e.Key]
		if !ok {
			d.unknownKey(e, keys(fields), path)
			continue
		}
		outer := d.lazy
		d.lazy = outer || isLazy(e.Key)
		d.value(e.Value, v.Field(i), join(path, e.Key))
		d.lazy = outer
		d.allowed(e.Value, v.Field(i), v.Type().Field(i).Tag.Get("is"), join(path, e.Key))
	}
}

// allowed checks a text, or each of several, against the tag "is" of its field: the words that it can
// be, or "span", a length of time. Empty is the default.
func (d *decoder) allowed(n *yamldoc.Node, v reflect.Value, is, path string) {
	switch {
	case is == "":
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			d.allowed(n, v.Index(i), is, path)
		}
	case v.Kind() == reflect.Map:
		for _, e := range n.Entries {
			d.allowed(e.Value, v.MapIndex(reflect.ValueOf(e.Text)), is, join(path, e.Text))
		}
	case v.String() == "":
	case is == "span":
		if span, err := time.ParseDuration(v.String()); err != nil || span <= 0 {
			d.add(n.Pos, "such as 90s, 30m or 2h", "%s must be a length of time with a unit", path)
		}
	default:
		words, remedy := strings.Split(is, "|"), ""
		if slices.Contains(words, v.String()) {
			return
		}
		if now := renamedWords()[v.String()]; slices.Contains(words, now) {
			remedy = "it is " + now + " now"
		} else if len(suggest.Nearest(v.String(), words, 1)) > 0 {
			remedy = nearest(v.String(), words)
		}
		d.add(n.Pos, remedy, "%s must be %s", path, quoted(words, " or "))
	}
}

func (d *decoder) unknownKey(e yamldoc.Entry, known []string, path string) {
	in := ""
	if path != "" {
		in = " in " + path
	}
	if e.Text == "" || isSuspicious(e.Text) {
		d.add(e.Pos, "", "unknown key%s", in)
		return
	}
	remedy := nearest(e.Text, known)
	if now := renamedKeys(path)[e.Text]; now != "" {
		remedy = "it is " + now + " now"
	}
	d.add(e.Pos, remedy, "unknown key %q%s", e.Text, in)
}

// isSuspicious reports whether a text looks like no name: it may be a secret
// that stands where a key belongs.
func isSuspicious(s string) bool {
	const longest = 40
	return len(s) > longest || strings.ContainsFunc(s, func(r rune) bool {
		letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		return !letter && r != '_'
	})
}

// fieldsOf maps the keys of a struct to its fields.
func fieldsOf(t reflect.Type) map[string]int {
	fields := map[string]int{}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		fields[name] = i
	}
	return fields
}

func (d *decoder) mapping(n *yamldoc.Node, v reflect.Value, path string) {
	if n.Kind != yamldoc.Mapping {
		d.add(n.Pos, "", "%smust be a mapping", where(path))
		return
	}
	m := reflect.MakeMap(v.Type())
	for _, e := range n.Entries {
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(e.Value, item, join(path, e.Text))
		m.SetMapIndex(reflect.ValueOf(e.Text), item)
	}
	v.Set(m)
}

func (d *decoder) list(n *yamldoc.Node, v reflect.Value, path string) {
	if n.Kind == yamldoc.Scalar && v.Type() == reflect.TypeFor[protocol.Network]() { // one of its words
		n = &yamldoc.Node{Kind: yamldoc.Sequence, Pos: n.Pos, Items: []*yamldoc.Node{n}}
	}
	if n.Kind != yamldoc.Sequence {
		d.add(n.Pos, "", "%smust be a list", where(path))
		return
	}
	s := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		d.value(item, s.Index(i), fmt.Sprintf("%s[%d]", path, i))
	}
	v.Set(s)
}

func (d *decoder) scalar(n *yamldoc.Node, v reflect.Value, path string) {
	want := ""
	switch v.Kind() {
	case reflect.String:
		d.text(n, v, path)
	case reflect.Bool:
		b, ok := n.Scalar.(bool)
		v.SetBool(b)
		want = or(ok, "true or false")
	case reflect.Int, reflect.Int64:
		i, ok := n.Scalar.(int64)
		v.SetInt(i)
		want = or(ok && i >= 0, "a whole number, at least 0")
	case reflect.Float64:
		f, ok := n.Scalar.(float64)
		if i, whole := n.Scalar.(int64); whole {
			f, ok = float64(i), true
		}
		v.SetFloat(f)
		want = or(ok && f >= 0 && !math.IsInf(f, 0), "a number, at least 0")
	default:
		panic(fmt.Sprintf("config: no decoding for %s", v.Type()))
	}
	if want != "" {
		d.add(n.Pos, "", "%smust be %s", where(path), want)
	}
}

// text decodes a string. A number is the text as written, so that names and
// keys need no quotes.
func (d *decoder) text(n *yamldoc.Node, v reflect.Value, path string) {
	switch n.Scalar.(type) {
	case string, int64, float64:
	default:
		d.add(n.Pos, "", "%smust be a text", where(path))
		return
	}
	text, unset, msg := expand(n.Text, d.env)
	switch {
	case msg != "":
		d.add(n.Pos, "write $$ for a dollar sign", "%s%s", where(path), msg)
	case d.lazy:
		v.SetString(n.Text)
	case unset != "":
		d.add(n.Pos, "", "%sasks for the environment variable %s, which is not set", where(path), unset)
	default:
		v.SetString(text)
	}
}

// isLazy reports whether the variables in a key's value are looked up where it
// is used: it belongs to a provider, a model or an agent that may never be used,
// and nothing in the config depends on what it says.
func isLazy(key string) bool {
	switch key {
	case "baseUrl", "apiKey", "apiKeyEnv", "name", "command", "args", "env", "url", "secret":
		return true
	}
	return false
}

// or returns what is wanted unless it is there.
func or(there bool, want string) string {
	if there {
		return ""
	}
	return want
}
