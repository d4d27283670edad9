package tools

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/fuzztest"
)

func TestSeveralEdits(t *testing.T) {
	t.Parallel()
	const text = "one\ntwo\nthree\ntwo\n"
	edits := func(pairs ...any) []any {
		var list []any
		for i := 0; i+1 < len(pairs); i += 2 {
			list = append(list, args{"old_str": pairs[i], "new_str": pairs[i+1]})
		}
		return list
	}
	cases := []struct {
		name       string
		a          args
		want, left string
	}{
		{"in order", args{"edits": edits("one", "1", "1\ntwo", "2")}, "Edited a.txt in 2 places.", "2\nthree\ntwo\n"},
		{"written as JSON", args{"edits": `[{"old_string":"one","new_string":"1"}]`}, "Edited a.txt", "1\ntwo\nthree\ntwo\n"},
		{"one without a list", args{"edits": args{"old": "one", "new": "1"}}, "Edited a.txt", "1\ntwo\nthree\ntwo\n"},
		{"all or none", args{"edits": edits("one", "1", "nine", "9")}, "Error: edits[2] of 2: old_string is not in a.txt", text},
		{"everywhere", args{"old_string": "two", "new_string": "2", "replace_all": "true"}, "Edited a.txt in 2 places", "one\n2\nthree\n2\n"},
		{"both forms", args{"old_string": "one", "new_string": "1", "edits": edits("two", "2")}, "Error: both edits and old_string are given", text},
		{"a part is missing", args{"edits": []any{args{"old_string": "one"}}}, "Error: edit_file: edits[1].new_string is missing", text},
	}
	for _, c := range cases {
		w, r := space(t, map[string]string{"a.txt": text})
		c.a["path"] = "a.txt"
		require.Contains(t, call(t, r, "edit_file", c.a), c.want, c.name)
		require.Equal(t, c.left, content(t, w, "a.txt"), c.name)
	}
}

// A short request can't fill the memory.
func TestEditOfBoundedSize(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("l", 1<<20)
	w, r := space(t, map[string]string{"a.txt": text})
	a := args{"path": "a.txt", "old_string": "l", "new_string": strings.Repeat("x", 64), "replace_all": true}
	require.Contains(t, call(t, r, "edit_file", a), "Error: a.txt would have more than 32 MB")
	require.Equal(t, text, content(t, w, "a.txt"))
}

// FuzzEdit checks that an edit changes only its target, preserves line endings, and never panics.
func FuzzEdit(f *testing.F) {
	f.Add("one\ntwo\n", "one", "1", "two", "")
	f.Add("a\r\nb\r\n", "a\nb", "x\ny", "x", "zz")
	f.Add("a\r\nb\n", "a\nb", "x\ny", "x\r", "zz")
	f.Add("aaaa", "a", "bb", "b", "a")
	f.Add("\ufeffx\n}\n}\n", "x\n\t}", "bb", "\r\n", "\n")
	f.Fuzz(func(t *testing.T, text, old1, new1, old2, new2 string) {
		defer fuzztest.Bounded(t)()
		d := draft{name: "f", text: text}
		for _, e := range []edit{{old1, new1, true}, {old2, new2, false}} {
			before := d.text
			old, replacement := d.fit(e)
			if noCR(old) != noCR(e.Old) || noCR(replacement) != noCR(e.New) {
				t.Fatalf("%+v became %q", e, []string{old, replacement})
			}
			err := d.apply(e)
			switch {
			case err != nil && d.text != before:
				t.Fatal("a failed edit has changed the text")
			case err != nil && e.Old != e.New && old != "" && strings.Count(before, old) == 1:
				t.Fatalf("%q is there once: %v", old, err)
			case err == nil && d.text != strings.ReplaceAll(before, old, replacement):
				t.Fatalf("%q: %q is not %q replaced", before, d.text, old)
			case err == nil && allCRLF(before) && strings.Contains(d.text, "\n") && !strings.Contains(e.Old, "\r") && !strings.Contains(e.New, "\r") && !allCRLF(d.text):
				t.Fatalf("%q has other line ends than %q", d.text, before)
			}
		}
	})
}

func noCR(s string) string { return strings.ReplaceAll(s, "\r", "") }

// Normalized arguments have the types in the schema, whatever the input.
func FuzzArguments(f *testing.F) {
	f.Add("1", `[{"old":"a","new":"b"}]`, "x")
	f.Fuzz(func(t *testing.T, n, edits, path string) {
		defer fuzztest.Bounded(t)()
		spec := EditFile(nil).Spec()
		out, err := normalize(spec, args{"file": path, "edits": edits, "replace_all": n, "old": n})
		if err != nil {
			return
		}
		for _, e := range names([]any{out["path"]}) {
			if e != path {
				t.Fatal("the path has changed")
			}
		}
		list, _ := out["edits"].([]any)
		for _, e := range list {
			if m, ok := e.(args); !ok || m["old_string"] == nil || m["new_string"] == nil {
				t.Fatalf("%v is no edit", e)
			}
		}
	})
}
