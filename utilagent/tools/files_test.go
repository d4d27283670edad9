package tools

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

// space is a workspace with files, and a secret next to it.
func space(t *testing.T, files map[string]string) (*Workspace, *Registry) {
	t.Helper()
	base := t.TempDir()
	dir := filepath.Join(base, "work")
	require.NoError(t, os.Mkdir(dir, 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(base, "secret.txt"), []byte("secret"), 0o644))
	for name, content := range files {
		full := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(full), 0o755))
		require.NoError(t, os.WriteFile(full, []byte(content), 0o644))
	}
	w, err := OpenWorkspace(dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	r, err := NewRegistry(ReadFile(w), WriteFile(w), EditFile(w), ListDir(w))
	require.NoError(t, err)
	return w, r
}

type args = map[string]any

func call(t *testing.T, r *Registry, name string, a args) string {
	t.Helper()
	res, err := r.Call(t.Context(), name, a)
	require.NoError(t, err)
	require.Equal(t, strings.HasPrefix(res.Text, "Error: "), res.Failed, res.Text)
	return res.Text
}

func content(t *testing.T, w *Workspace, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(w.Dir(), name))
	require.NoError(t, err)
	return string(b)
}

func TestReadFile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("line\n", 3000)
	w, r := space(t, map[string]string{
		"a.txt": "one\r\ntwo\nthree", "empty": "", "bin": "a\x00b", "latin": "caf\xe9\n", "long.txt": long,
		"bom": "\ufeffx\n", "wide": "\xff\xfeh\x00\xe9\x00\r\x00\n\x00y\x00", "nul": strings.Repeat("x\n", 5000) + "a\x00\n",
		"wide.txt": strings.Repeat("w", 5000) + "\nnext\n", "sub/main.go": "package main\n",
	})
	cases := []struct {
		name string
		args args
	}{
		{"whole", args{"path": "a.txt"}},
		{"range", args{"path": "a.txt", "offset": 2.0, "limit": 1.0}},
		{"another name for path", args{"file_path": "a.txt", "limit": "1", "nonsense": true}},
		{"absolute path inside", args{"path": filepath.Join(w.Dir(), "sub", "main.go")}},
		{"dots that stay inside", args{"path": "./sub/../a.txt", "limit": 1.0}},
		{"empty", args{"path": "empty"}},
		{"not UTF-8", args{"path": "latin"}},
		{"binary", args{"path": "bin"}},
		{"a directory", args{"path": "sub"}},
		{"behind the end", args{"path": "a.txt", "offset": 9.0}},
		{"misspelt", args{"path": "sub/mian.go"}},
		{"no such directory", args{"path": "x/y/z"}},
		{"byte order mark", args{"path": "bom"}},
		{"UTF-16", args{"path": "wide"}},
		{"NUL in text", args{"path": "nul", "offset": 5001.0}},
		{"no path", args{}},
		{"wrong type", args{"path": args{}}},
	}
	for _, c := range cases {
		prosetest.Text(t, call(t, r, "read_file", c.args), c.name)
	}
	text := call(t, r, "read_file", args{"path": "long.txt"})
	prosetest.Text(t, text)
	text = call(t, r, "read_file", args{"path": "wide.txt"})
	prosetest.Text(t, text)
	require.Less(t, len(text), 2200)
}

// A page is never so long that its middle would be removed.
func TestReadFileStopsBeforeTheResultIsCut(t *testing.T) {
	t.Parallel()
	_, r := space(t, map[string]string{"wide.txt": strings.Repeat(strings.Repeat("w", 1500)+"\n", 100)})
	text := call(t, r, "read_file", args{"path": "wide.txt"})
	require.LessOrEqual(t, len(text), MaxResult)
	prosetest.Text(t, text)
}

func TestWriteFile(t *testing.T) {
	t.Parallel()
	w, r := space(t, map[string]string{"old.txt": "old\n", "run.sh": "#!/bin/sh\n", "fixed.txt": "fixed\n", "dos.txt": "\ufeffa\r\nb\r\n"})
	prosetest.Text(t, call(t, r, "write_file", args{"path": "a/b/new.txt", "content": "one\ntwo"}))
	require.Equal(t, "one\ntwo", content(t, w, "a/b/new.txt"))
	require.Equal(t, "Replaced old.txt: 1 lines, 4 bytes.", call(t, r, "write_file", args{"path": "old.txt", "content": "new\n"}))
	require.Equal(t, "new\n", content(t, w, "old.txt"))
	prosetest.Text(t, call(t, r, "write_file", args{"path": "a", "content": ""}))
	require.Contains(t, call(t, r, "write_file", args{"path": "old.txt/x", "content": ""}), "Error: ")

	require.NoError(t, os.Chmod(filepath.Join(w.Dir(), "run.sh"), 0o755))
	call(t, r, "write_file", args{"path": "run.sh", "content": "#!/bin/sh\necho\n"})
	info, err := os.Stat(filepath.Join(w.Dir(), "run.sh"))
	require.NoError(t, err)
	if runtime.GOOS != "windows" {
		require.EqualValues(t, 0o755, info.Mode().Perm(), "a script stays executable")
	}
	prosetest.Text(t, call(t, r, "write_file", args{"path": "dos.txt", "content": "x\nyy\n"}))
	require.Equal(t, "\ufeffx\r\nyy\r\n", content(t, w, "dos.txt"))
	require.NoError(t, os.Chmod(filepath.Join(w.Dir(), "fixed.txt"), 0o444))
	require.Contains(t, call(t, r, "write_file", args{"path": "fixed.txt", "content": "x"}), "Error: fixed.txt is read-only")
	require.Contains(t, call(t, r, "edit_file", args{"path": "fixed.txt", "old_string": "fixed", "new_string": "x"}), "Error: fixed.txt is read-only")

	entries, err := os.ReadDir(w.Dir())
	require.NoError(t, err)
	require.Len(t, entries, 5, "no temporary file is left")
}

func TestEditFile(t *testing.T) {
	t.Parallel()
	const code = "package a\n\nfunc A() int {\n\treturn 1\n}\n\nfunc B() int {\n\treturn 2\n}\n"
	cases := []struct {
		name, old, new string
		file           string // "" for code
		// substring of the answer
		left string // the file afterwards; "" for unchanged
	}{
		{"once", "return 1", "return 3", "", strings.Replace(code, "return 1", "return 3", 1)},
		{"delete", "\treturn 2\n", "", "", strings.Replace(code, "\treturn 2\n", "", 1)},
		{"not unique", "() int {", "x", "", ""},
		{"white space only", "func A() int {\n    return 1\n}", "x", "", ""},
		{"nearly", "func B() int {\n\treturn 7\n}", "x", "", ""},
		{"one line, misspelt", "\tretrun 2", "x", "", ""},
		{"nothing like it", "zzzzzz", "x", "", ""},
		{"a short text says nothing", "zzzzzz", "x", "", ""},
		{"made already", "return 9", "return 2", "", ""},
		{"no change", "return 1", "return 1", "", ""},
		{"empty", "", "x", "", ""},
		{"CR LF in the new text only", "two", "2\n2", "one\r\ntwo\r\n", "one\r\n2\r\n2\r\n"},
		{"CR LF where the file has none", "one\r\ntwo", "1\r\n2", "one\ntwo\n", "1\n2\n"},
		{"byte order mark", "one", "1", "\ufeffone\n", "\ufeff1\n"},
		{"UTF-16", "a", "b", "\xff\xfea\x00", ""},
		{"CR LF", "one\ntwo", "1\n2", "one\r\ntwo\r\nthree\r\n", "1\r\n2\r\nthree\r\n"},
		{"binary", "a", "b", "a\x00", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if c.file == "" {
				c.file = code
			}
			w, r := space(t, map[string]string{"a.go": c.file})
			prosetest.Text(t, call(t, r, "patch_file", args{"path": "a.go", "old_str": c.old, "new_str": c.new}))
			if c.left == "" {
				c.left = c.file
			}
			require.Equal(t, c.left, content(t, w, "a.go"))
		})
	}
}

func TestListDir(t *testing.T) {
	t.Parallel()
	w, r := space(t, map[string]string{"b.txt": "12345", "a/x/deep.txt": "", "a/y.txt": "1"})
	require.NoError(t, os.Symlink("b.txt", filepath.Join(w.Dir(), "link")))
	require.NoError(t, os.Mkdir(filepath.Join(w.Dir(), "void"), 0o755))
	require.Equal(t, "a/\nb.txt  5\nlink -> b.txt\nvoid/\n", call(t, r, "list_files", args{}))
	require.Equal(t, "x/\nx/deep.txt  0\ny.txt  1\n", call(t, r, "list_dir", args{"path": "a", "depth": 2.0}))
	require.Equal(t, "(empty directory)", call(t, r, "list_dir", args{"path": "void"}))
	prosetest.Text(t, call(t, r, "list_dir", args{"path": "b.txt"}))
	for i := range 600 {
		require.NoError(t, os.WriteFile(filepath.Join(w.Dir(), "void", fmt.Sprintf("%03d", i)), nil, 0o644))
	}
	prosetest.Text(t, call(t, r, "list_dir", args{"path": "void"}))
}

// No path from a model can escape the workspace, for reading or writing.
func TestNothingLeavesTheWorkspace(t *testing.T) {
	t.Parallel()
	w, r := space(t, map[string]string{"in.txt": "in\n", "dir/f": "f\n"})
	base := filepath.Dir(w.Dir())
	links := map[string]string{
		"out-file": filepath.Join(base, "secret.txt"), "out-rel": "../secret.txt", "out-dir": base,
		"dir/up": "../../secret.txt", "dangling": filepath.Join(base, "new.txt"), "chain": "out-dir",
	}
	for name, target := range links {
		require.NoError(t, os.Symlink(target, filepath.Join(w.Dir(), name)))
	}
	paths := []string{
		"../secret.txt", "dir/../../secret.txt", filepath.Join(base, "secret.txt"), "/etc/passwd", "out-file", "out-rel",
		"out-dir/secret.txt", "dir/up", "chain/secret.txt", "/proc/self/root/etc/passwd", w.Dir() + "/../secret.txt", w.Dir() + "x/f",
	}
	for _, p := range paths {
		for _, name := range []string{"read_file", "write_file", "edit_file"} {
			text := call(t, r, name, args{"path": p, "content": "x", "old_string": "secret", "new_string": "x"})
			prosetest.Text(t, text, "%s %s", name, p)
		}
	}
	for _, p := range []string{"..", "dir/../..", "/", base, "out-dir", "chain", "out-dir/work"} {
		text := call(t, r, "list_dir", args{"path": p})
		if p == "out-dir/work" { // leads out and back in
			require.Contains(t, text, "in.txt")
			continue
		}
		prosetest.Text(t, text, p)
	}
	require.NoError(t, os.Symlink("dir/new", filepath.Join(w.Dir(), "early")))
	for _, name := range []string{"dangling", "early"} { // the link stays
		prosetest.Text(t, call(t, r, "write_file", args{"path": name, "content": "x"}))
		info, err := os.Lstat(filepath.Join(w.Dir(), name))
		require.NoError(t, err)
		require.NotZero(t, info.Mode()&os.ModeSymlink, name)
	}
	require.NoFileExists(t, filepath.Join(base, "new.txt"))
	b, err := os.ReadFile(filepath.Join(base, "secret.txt"))
	require.NoError(t, err)
	require.Equal(t, "secret", string(b))

	require.NoError(t, os.Symlink(filepath.Join(w.Dir(), "in.txt"), filepath.Join(w.Dir(), "inside")))
	require.Equal(t, "1→in\n", call(t, r, "read_file", args{"path": "inside"}), "an absolute link that stays inside is fine")
	call(t, r, "write_file", args{"path": "inside", "content": "changed\n"})
	require.Equal(t, "changed\n", content(t, w, "in.txt"), "the target is written, the link stays")
}

// Writing to a hard link of a file outside must not change that file.
func TestHardLinkIsBroken(t *testing.T) {
	t.Parallel()
	w, r := space(t, nil)
	secret := filepath.Join(filepath.Dir(w.Dir()), "secret.txt")
	require.NoError(t, os.Link(secret, filepath.Join(w.Dir(), "hard")))
	call(t, r, "write_file", args{"path": "hard", "content": "x"})
	call(t, r, "edit_file", args{"path": "hard", "old_string": "x", "new_string": "y"})
	b, err := os.ReadFile(secret)
	require.NoError(t, err)
	require.Equal(t, "secret", string(b))
}

// A link swapped in between the check and the access is rejected.
func TestSwappedLinkIsRefused(t *testing.T) {
	t.Parallel()
	w, _ := space(t, map[string]string{"dir/secret.txt": "mine\n"})
	require.NoError(t, os.RemoveAll(filepath.Join(w.Dir(), "dir")))
	require.NoError(t, os.Symlink(filepath.Dir(w.Dir()), filepath.Join(w.Dir(), "dir")))
	_, err := w.root.OpenFile("dir/secret.txt", os.O_RDONLY, 0)
	prosetest.Error(t, w.explain("dir/secret.txt", err))
	require.Error(t, w.replace(filepath.Join("dir", "new.txt"), []byte("x"), nil))
}

func TestRegistryFindsToolsByTheNamesThatModelsUse(t *testing.T) {
	t.Parallel()
	_, r := space(t, map[string]string{"a": "x\n"})
	for _, name := range []string{"read_file", "Read_File", "functions.read_file", " read_file ", "Functions.read_file"} {
		require.Equal(t, "1→x\n", call(t, r, name, args{"path": "a"}), name)
	}
	prosetest.Text(t, call(t, r, "reed_file", nil))
	require.Error(t, r.Add(New(Spec{Name: "LIST_FILES"}, func(context.Context, struct{}) (string, error) { return "", nil })))
}

// Results of a faulty third-party tool are bounded as well.
func TestResultsAreBoundedText(t *testing.T) {
	t.Parallel()
	type in struct {
		N     int      `json:"n"`
		On    bool     `json:"on,omitempty"`
		Words []string `json:"words,omitempty"`
	}
	big := New(Spec{Name: "big"}, func(_ context.Context, a in) (string, error) {
		return fmt.Sprint(a.On, a.Words) + strings.Repeat("é\xff\n", a.N), nil
	})
	r, err := NewRegistry(big)
	require.NoError(t, err)
	text := call(t, r, "big", args{"n": "100000", "on": "true", "words": `["a","b"]`})
	require.LessOrEqual(t, len(text), MaxResult+100)
	prosetest.Text(t, text)
	prosetest.Text(t, call(t, r, "big", args{"n": 1.5}))
	prosetest.Text(t, call(t, r, "big", args{"n": 1e300}))
	prosetest.Text(t, call(t, r, "big", args{"n": 1.0, "words": "no list"}))
}

// Schemas are strict, because endpoints reject loose ones.
func TestSchemasAreClosed(t *testing.T) {
	t.Parallel()
	w, r := space(t, nil)
	require.NoError(t, r.Add(RunCommand(w, Commands{Shell: true})))
	for _, s := range r.Specs() {
		require.Equal(t, false, s.Parameters["additionalProperties"], s.Name)
		require.NotNil(t, s.Parameters["required"], s.Name)
		require.NotEmpty(t, s.Description, s.Name)
	}
}

// The descriptions of arguments state the limits that apply.
func TestDescribedLimits(t *testing.T) {
	t.Parallel()
	w, _ := space(t, nil)
	for name, limits := range map[string][2]int{
		"read_file.limit": {defaultLines, maxLines}, "list_dir.depth": {1, maxDepth}, "glob.limit": {defaultFound, maxFound},
		"grep.limit": {defaultMatches, maxMatches}, "grep.context": {0, maxContext},
		"run_command.timeout": {int(defaultTimeout.Seconds()), int(maxTimeout.Seconds())},
	} {
		tool, argument, _ := strings.Cut(name, ".")
		r, err := NewRegistry(All(w, Commands{})...)
		require.NoError(t, err)
		found, ok := r.Find(tool)
		require.True(t, ok, tool)
		properties := found.Spec().Parameters["properties"].(map[string]any)
		text := properties[argument].(map[string]any)["description"]
		require.Contains(t, text, fmt.Sprintf("(default %d, at most %d)", limits[0], limits[1]), name)
	}
}
