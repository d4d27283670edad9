package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
)

// maxEditBytes bounds the size of a file to edit, which is held in memory.
const maxEditBytes = 16 << 20

// EditFile returns the tool edit_file.
func EditFile(w *Workspace) Tool {
	return New(Spec{
		Name:    "edit_file",
		Aliases: []string{"patch_file"},
		Description: "Replace text in a file of the workspace. old_string must be the exact text, with its indentation and without line numbers, " +
			"and must occur exactly once: add lines around it until it does, or set replace_all. Several places of one file: give edits. " +
			fmt.Sprintf("CR LF line ends need not be written. Files up to %d MB.", maxEditBytes>>20),
		Effect: Writes,
	}, func(_ context.Context, a editArgs) (string, error) { return w.editFile(a) })
}

type editArgs struct {
	Path  string `json:"path" doc:"File, relative to the working directory"`
	Old   string `json:"old_string,omitempty" doc:"The text to replace, exactly as it is in the file"`
	New   string `json:"new_string,omitempty" doc:"The text to put there; empty to delete"`
	All   bool   `json:"replace_all,omitempty" doc:"Replace every occurrence (default: there must be exactly one)"`
	Edits []edit `json:"edits,omitempty" doc:"Several replacements instead of one, made in this order: either all of them or none"`
}

type edit struct {
	Old string `json:"old_string" doc:"The text to replace, exactly as it is in the file"`
	New string `json:"new_string" doc:"The text to put there; empty to delete"`
	All bool   `json:"replace_all,omitempty" doc:"Replace every occurrence (default: there must be exactly one)"`
}

// list returns the edits in order.
func (a editArgs) list() ([]edit, error) {
	single := a.Old != "" || a.New != ""
	switch {
	case single && len(a.Edits) > 0:
		return nil, errors.New("both edits and old_string are given. Put everything into edits, or make one edit without it")
	case len(a.Edits) > 0:
		return a.Edits, nil
	case !single:
		return nil, errors.New("old_string is empty. Give the text to replace, or use write_file for a new file")
	}
	return []edit{{a.Old, a.New, a.All}}, nil
}

func (w *Workspace) editFile(a editArgs) (string, error) {
	edits, err := a.list()
	if err != nil {
		return "", err
	}
	local, err := w.resolve(a.Path)
	if err == nil {
		err = w.changing(local)
	}
	if err != nil {
		return "", err
	}
	text, info, err := w.readText(a.Path)
	if err != nil {
		return "", err
	}
	if err := writable(a.Path, info); err != nil {
		return "", err
	}
	d := draft{name: shown(a.Path), text: text}
	for i, e := range edits {
		if err := d.apply(e); err != nil {
			if len(edits) > 1 {
				err = fmt.Errorf("edits[%d] of %d: %w. None of the edits has been made", i+1, len(edits), err)
			}
			return "", err
		}
	}
	if err := w.replace(local, []byte(d.text), info); err != nil {
		return "", w.explain(a.Path, err)
	}
	return fmt.Sprintf("Edited %s in %s.", d.name, render.Count(d.places, "place")), nil
}

// readText reads a whole file for editing.
func (w *Workspace) readText(name string) (text string, info fs.FileInfo, err error) {
	f, info, err := w.open(name)
	if err != nil {
		return "", nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info.Size() > maxEditBytes {
		return "", nil, fmt.Errorf("%s has %d bytes: only files up to %d MB can be edited. Use a command instead, if you may run any", shown(name), info.Size(), maxEditBytes>>20)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxEditBytes+1))
	if err != nil {
		return "", nil, w.explain(name, err)
	}
	if err := encodingOf(b[:min(len(b), 8000)]).refuse(shown(name), info.Size()); err != nil {
		return "", nil, err
	}
	if !utf8.Valid(b) || bytes.IndexByte(b, 0) >= 0 {
		return "", nil, fmt.Errorf("%s is not all UTF-8 text: an edit could damage it. Use a command instead, if you may run any", shown(name))
	}
	return string(b), info, nil
}

// draft is a text being edited. Nothing is written before all edits have succeeded.
type draft struct {
	name   string
	text   string
	places int // changed so far
}

// apply makes one edit.
func (d *draft) apply(e edit) error {
	if e.Old == "" {
		return errors.New("old_string is empty. Give the text to replace, or use write_file for a new file")
	}
	if e.Old == e.New {
		return errors.New("old_string and new_string are the same: there is nothing to change")
	}
	old, replacement := d.fit(e)
	n := strings.Count(d.text, old)
	switch {
	case n == 0:
		return notFound(d.name, d.text, e.Old, e.New)
	case n > 1 && !e.All:
		return notUnique(d.name, d.text, old)
	case len(d.text)+n*(len(replacement)-len(old)) > 2*maxEditBytes:
		return fmt.Errorf("%s would have more than %d MB", d.name, 2*maxEditBytes>>20)
	}
	d.text, d.places = strings.ReplaceAll(d.text, old, replacement), d.places+n
	return nil
}

// fit adapts an edit to the text's line endings. A model does not see CRs, so it writes none, or writes one
// everywhere.
func (d *draft) fit(e edit) (old, replacement string) {
	switch {
	case allCRLF(d.text):
		return toCRLF(e.Old), toCRLF(e.New)
	case strings.Contains(d.text, e.Old):
		return e.Old, e.New
	case strings.Contains(d.text, toCRLF(e.Old)):
		return toCRLF(e.Old), toCRLF(e.New)
	case !strings.Contains(d.text, "\r"):
		return toLF(e.Old), toLF(e.New)
	}
	return e.Old, e.New
}

// notUnique returns an error that lists where the text occurs.
func notUnique(name, text, old string) error {
	var lines []string
	line, from := 1, 0
	for len(lines) < 10 {
		i := strings.Index(text[from:], old)
		if i < 0 {
			break
		}
		line += strings.Count(text[from:from+i], "\n")
		lines = append(lines, fmt.Sprint(line))
		line += strings.Count(text[from+i:from+i+len(old)], "\n")
		from += i + len(old)
	}
	return fmt.Errorf("old_string occurs %d times in %s, at lines %s. Add lines around it so that it occurs once, or set replace_all",
		strings.Count(text, old), name, strings.Join(lines, ", "))
}

// excerpt returns the numbered lines from first to last, at most 60.
func excerpt(text string, first, last int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	first, last = max(first, 1), min(last, len(lines))
	var b strings.Builder
	const half = 30
	for n := first; n <= last; n++ {
		if n == first+half && last-n > half {
			fmt.Fprintf(&b, "[… %d lines left out …]\n", last-n-half+1)
			n = last - half + 1
		}
		line := strings.TrimSuffix(lines[n-1], "\r")
		if len(line) > 300 {
			line, _ = plaintext.WholeRunes(line[:300], "")
			line += "…"
		}
		fmt.Fprintf(&b, "%d→%s\n", n, line)
	}
	return b.String()
}

// minTelling is the minimum length at which finding a text is significant.
const minTelling = 8

// notFound returns an error for a missing text. It shows the place of its longest line, because most such texts
// differ only in indentation or in a line copied from memory.
func notFound(name, text, old, replacement string) error {
	if len(strings.TrimSpace(replacement)) >= minTelling && strings.Contains(text, replacement) {
		return fmt.Errorf("old_string is not in %s, but new_string is: the edit seems to be made already. Read "+
			"the file before you continue", name)
	}
	wanted := strings.Split(strings.Trim(old, "\r\n"), "\n")
	key := 0 // the longest line
	for i, line := range wanted {
		if len(line) > len(wanted[key]) {
			key = i
		}
	}
	words := strings.Fields(wanted[key])
	for i, line := range strings.Split(text, "\n") {
		if len(words) > 0 && slices.Equal(strings.Fields(line), words) {
			return fmt.Errorf("old_string is not in %s. A similar place:\n%sCopy the text from there, without the line "+
				"numbers", name, excerpt(text, i-key+1, i-key+len(wanted)))
		}
	}
	return fmt.Errorf("old_string is not in %s, nor anything like it. Read the file and copy the text from there", name)
}

// otherNames maps parameters to names that models use for them because other agents' tools do.
var otherNames = map[string][]string{
	"path":       {"file_path", "filepath", "filename", "file", "dir", "directory", "dir_path", "target_file"},
	"command":    {"cmd", "script"},
	"content":    {"contents", "text", "file_text"},
	"old_string": {"old_str", "old_text", "search", "old"},
	"new_string": {"new_str", "new_text", "replace", "new"},
	"cwd":        {"workdir", "working_directory", "work_dir"},
	"offset":     {"start_line", "start", "line"},
	"limit":      {"max_lines", "line_count", "max_results", "head_limit"},
	"pattern":    {"query", "regex", "regexp"},
	"glob":       {"include", "file_pattern", "file_glob"},
	"url":        {"uri", "link", "href"},
	"edits":      {"changes", "replacements"},
}

// normalize fits arguments to a tool's schema where the model's intention is clear: alternative parameter
// names, numbers and booleans written as strings, lists and objects written as JSON, a single value where a
// list is expected. Unknown arguments are dropped. Remaining problems are all reported in one error.
func normalize(spec Spec, args map[string]any) (map[string]any, error) {
	out, problems := fit(spec.Parameters, args, "")
	if len(problems) > 0 {
		return nil, fmt.Errorf("%s: %s. Call it again with %s", spec.Name, strings.Join(problems, "; "), usage(spec.Parameters))
	}
	return out, nil
}

// fit fits an object to its schema. place is a prefix such as "edits[2]." for names in problems.
func fit(schema, args map[string]any, place string) (out map[string]any, problems []string) {
	properties, _ := schema["properties"].(map[string]any)
	required := names(schema["required"])
	out = map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		v, ok := find(args, name, properties)
		if !ok || v == nil {
			if slices.Contains(required, name) {
				problems = append(problems, place+name+" is missing")
			}
			continue
		}
		property, _ := properties[name].(map[string]any)
		v, wrong := fitValue(property, v, place+name)
		if len(wrong) > 0 {
			problems = append(problems, wrong...)
			continue
		}
		out[name] = v
	}
	return out, problems
}

// fitValue fits a value and its contents to a schema.
func fitValue(schema map[string]any, v any, place string) (any, []string) {
	typ, _ := schema["type"].(string)
	v, ok := coerce(v, typ)
	if !ok {
		return nil, []string{fmt.Sprintf("%s must be of type %s", place, typ)}
	}
	if allowed := names(schema["enum"]); len(allowed) > 0 && typ == "string" {
		if i := slices.IndexFunc(allowed, func(a string) bool { return strings.EqualFold(a, v.(string)) }); i >= 0 {
			return allowed[i], nil
		}
		return nil, []string{fmt.Sprintf("%s must be one of %s", place, strings.Join(allowed, ", "))}
	}
	if object, ok := v.(map[string]any); ok && schema["properties"] != nil {
		return fit(schema, object, place+".")
	}
	list, ok := v.([]any)
	items, itemsKnown := schema["items"].(map[string]any)
	if !ok || !itemsKnown {
		return v, nil
	}
	var problems []string
	fitted := make([]any, len(list))
	for i, item := range list {
		var wrong []string
		fitted[i], wrong = fitValue(items, item, fmt.Sprintf("%s[%d]", place, i+1))
		problems = append(problems, wrong...)
	}
	return fitted, problems
}

// names converts a list of strings, whether built in Go or decoded from JSON.
func names(v any) []string {
	switch list := v.(type) {
	case []string:
		return list
	case []any:
		var out []string
		for _, e := range list {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// find returns an argument by its name, or by an alternative name that is not itself a parameter.
func find(args map[string]any, name string, properties map[string]any) (any, bool) {
	if v, ok := args[name]; ok {
		return v, true
	}
	for _, other := range otherNames[name] {
		if _, taken := properties[other]; taken {
			continue
		}
		if v, ok := args[other]; ok {
			return v, true
		}
	}
	return nil, false
}

// usage describes the arguments of a tool, as in {"path": string, "limit"?: integer}.
func usage(schema map[string]any) string {
	properties, _ := schema["properties"].(map[string]any)
	required := names(schema["required"])
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		mark := "?"
		if slices.Contains(required, name) {
			mark = ""
		}
		property, _ := properties[name].(map[string]any)
		kind := fmt.Sprint(property["type"])
		if items, ok := property["items"].(map[string]any); ok && items["properties"] != nil {
			kind = "[" + usage(items) + "]"
		}
		parts = append(parts, fmt.Sprintf("%q%s: %s", name, mark, kind))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// coerce converts a value to a JSON type if nothing is lost.
func coerce(v any, typ string) (any, bool) {
	switch typ {
	case "string":
		return coerceString(v)
	case "integer", "number":
		f, ok := v.(float64)
		if s, isText := v.(string); isText {
			var err error
			f, err = strconv.ParseFloat(strings.TrimSpace(s), 64)
			ok = err == nil
		}
		const most = 1 << 53 // beyond this, float64 is not exact
		if typ == "integer" && (f != math.Trunc(f) || math.Abs(f) > most) || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, false
		}
		return f, ok
	case "boolean":
		if s, ok := v.(string); ok {
			b, err := strconv.ParseBool(strings.ToLower(strings.TrimSpace(s)))
			return b, err == nil
		}
		_, ok := v.(bool)
		return v, ok
	case "array":
		return coerceList(v)
	case "object":
		return coerceObject(v)
	}
	return v, true
}

func coerceString(v any) (any, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return nil, false
}

// coerceList also accepts a list encoded as JSON, and one object for a list of one.
func coerceList(v any) (any, bool) {
	switch v := v.(type) {
	case []any:
		return v, true
	case map[string]any:
		return []any{v}, true
	case string:
		var list []any
		if json.Unmarshal([]byte(v), &list) == nil && list != nil {
			return list, true
		}
		if object, ok := coerceObject(v); ok {
			return []any{object}, true
		}
	}
	return nil, false
}

func coerceObject(v any) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		return v, true
	case string:
		var object map[string]any
		err := json.Unmarshal([]byte(v), &object)
		return object, err == nil && object != nil
	}
	return nil, false
}

// explain turns a file system error into one that a model can act on.
func (w *Workspace) explain(name string, err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // the error's path is not the one that the model used
	}
	quoted := shown(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return w.missing(name)
	case strings.Contains(err.Error(), "escapes"):
		return w.outside(name)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s: permission denied. Work with other files, or say in your answer that this one is not accessible", quoted)
	case errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s: a part of this path is a file, not a directory. Check the path with list_dir", quoted)
	case errors.Is(err, syscall.ENAMETOOLONG):
		return errors.New("the path, or a name in it, is too long. Use a shorter one")
	case errors.Is(err, syscall.ELOOP), strings.Contains(err.Error(), "too many links"):
		return fmt.Errorf("%s is a link that leads back to itself. Use another path", quoted)
	case errors.Is(err, syscall.ENOSPC):
		return fmt.Errorf("%s: the disk is full. Nothing was written: stop writing, and report it in your answer", quoted)
	}
	return fmt.Errorf("%s: %w. Check the path with list_dir", quoted, err)
}

// missing returns the error for a path that does not exist, with the most similar names in its directory.
func (w *Workspace) missing(name string) error {
	local, err := w.local(name)
	if err != nil {
		return err
	}
	dir, base := filepath.Dir(local), filepath.Base(local)
	if near := w.near(dir, base); len(near) > 0 {
		return fmt.Errorf("there is no %s. Did you mean %s?", shown(name), strings.Join(near, " or "))
	}
	if info, err := w.root.Stat(dir); err != nil || !info.IsDir() {
		return fmt.Errorf("there is no %s, nor its directory. Use list_dir or glob to see what is there", shown(name))
	}
	return fmt.Errorf("there is no %s. Use list_dir or glob to see what is there", shown(name))
}

// maxCompared bounds how many names are compared with a misspelled one.
const maxCompared = 20_000

// near returns the names in a directory that are most similar to base.
func (w *Workspace) near(dir, base string) []string {
	d, err := w.folder(dir)
	if err != nil {
		return nil
	}
	defer d.close()
	entries, err := d.entries()
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries[:min(len(entries), maxCompared)] {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	near := suggest.Nearest(base, names, 3)
	for i, n := range near {
		near[i] = shown(path.Join(filepath.ToSlash(dir), n))
	}
	return near
}

// shown returns a path for display, quoted and escaped if it is ambiguous.
func shown(name string) string {
	odd := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, odd) || strings.TrimSpace(name) != name {
		return strconv.Quote(name)
	}
	return name
}

// WriteFile returns the tool write_file.
func WriteFile(w *Workspace) Tool {
	return New(Spec{
		Name:        "write_file",
		Description: "Write a whole file of the workspace: a new one, or one that is replaced. Missing directories are made; the mode, CR LF line ends and a byte order mark of a file that is replaced are kept. To change a part of a file use edit_file.",
		Effect:      Writes,
	}, func(_ context.Context, a writeArgs) (string, error) { return w.writeFile(a) })
}

type writeArgs struct {
	Path    string `json:"path" doc:"File, relative to the working directory"`
	Content string `json:"content" doc:"The whole content"`
}

func (w *Workspace) writeFile(a writeArgs) (string, error) {
	local, err := w.resolve(a.Path)
	if err == nil {
		err = w.changing(local)
	}
	if err != nil {
		return "", err
	}
	info, err := w.root.Stat(local)
	verb := "Replaced"
	if _, is := w.root.Readlink(local); errors.Is(err, fs.ErrNotExist) && is == nil { // it would be replaced
		return "", fmt.Errorf("%s is a link to a file that does not exist. Write that file, or use another path", shown(a.Path))
	}
	if errors.Is(err, fs.ErrNotExist) {
		verb = "Wrote new file"
	} else if err != nil {
		return "", w.explain(a.Path, err)
	} else if err := writable(a.Path, info); err != nil {
		return "", err
	}
	text, note := w.formOf(a.Path, info).apply(a.Content)
	if err := w.replace(local, []byte(text), info); err != nil {
		return "", w.explain(a.Path, err)
	}
	lines := strings.Count(a.Content, "\n")
	if a.Content != "" && !strings.HasSuffix(a.Content, "\n") {
		lines++
	}
	return fmt.Sprintf("%s %s: %d lines, %d bytes.%s", verb, shown(a.Path), lines, len(text), note), nil
}

func writable(name string, info fs.FileInfo) error {
	if info.IsDir() {
		return fmt.Errorf("%s is a directory. Name a file in it", shown(name))
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is a %s, not a regular file: it cannot be written. Write another file", shown(name), kind(info.Mode()))
	}
	if info.Mode().Perm()&0o222 == 0 { // a rename ignores the file's permissions
		return fmt.Errorf("%s is read-only. Leave it as it is, or describe the change in your answer", shown(name))
	}
	return nil
}

// replace writes a temporary file and renames it, so that no reader sees a partial file, and a hard link to a
// file outside is not modified. old is nil for a new file. These are the user's files, so they are confined
// by the root instead of going through util/durable, and are not flushed.
func (w *Workspace) replace(local string, content []byte, old fs.FileInfo) (err error) {
	dir, err := w.plainDir(filepath.Dir(local))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	perm := fs.FileMode(0o666)
	if old != nil {
		perm = old.Mode().Perm()
	}
	temp, f, err := newTemp(dir, perm)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, dir.Remove(temp))
		}
	}()
	_, err = f.Write(content)
	if old != nil && err == nil {
		err = f.Chmod(perm) // the umask removed bits that the old file had
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return dir.Rename(temp, filepath.Base(local))
}

// plainDir opens a directory, as returned by resolve, and creates missing parts. No part may be a link: one
// that was placed there in the meantime could point to a protected path.
func (w *Workspace) plainDir(name string) (dir *os.Root, err error) {
	dir, err = w.root.OpenRoot(".")
	if err != nil || name == "." {
		return dir, err
	}
	for part := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		next, err := enter(dir, part)
		if err := errors.Join(err, dir.Close()); err != nil {
			return nil, err
		}
		dir = next
	}
	return dir, nil
}

// enter opens a subdirectory and creates it if necessary.
func enter(dir *os.Root, name string) (*os.Root, error) {
	if err := dir.Mkdir(name, 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	before, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	next, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if after, err := next.Stat("."); err != nil || !os.SameFile(before, after) {
		return nil, errors.Join(err, next.Close(), &fs.PathError{Op: "open", Path: name, Err: errChanged})
	}
	return next, nil
}

var errChanged = errors.New("it was replaced by a link")

// newTemp creates a file with an unused name.
func newTemp(dir *os.Root, perm fs.FileMode) (string, *os.File, error) {
	for n := 0; ; n++ {
		name := fmt.Sprintf(".uwf-%d.tmp", n)
		f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
		if errors.Is(err, fs.ErrExist) && n < 1000 {
			continue
		}
		return name, f, err
	}
}
