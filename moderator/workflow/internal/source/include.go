// Package source reads the text of a workflow file with its included files, and reports problems at positions
// in it.
package source

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Tag is replaced by the content of a file.
const Tag = "!include"

// Bounds of includes: far above realistic handwritten files, and low enough to process hostile ones in a
// fraction of a second.
const (
	maxIncludes     = 200     // number of tags resolved, counting repeated uses of a file
	maxIncludeDepth = 10      // depth of nested includes
	maxIncludeBytes = 4 << 20 // of all files together
	maxIncludeFile  = 1 << 20
	maxValues       = 200_000 // in the whole document, counting repeated uses of a file
)

// includer replaces "!include file" with the content of the file.
type includer struct {
	*Report
	node                    func(protocol.Hash) (any, error)
	schemas                 []string
	includes, bytes, values int
	stopped                 bool // a bound was exceeded and reported
}

// From describes the source of a document and the directory it can include from.
type From struct {
	Dir        *os.Root // nil disables includes
	File, Path string   // of the document, for messages and for lookup; see [workflow.Source]
	Node       func(protocol.Hash) (any, error)
	Schemas    []string // keys of roles that can hold the hash of a schema
}

// folder is the directory of a file, from which it can include others. Nothing outside it can be opened,
// neither through ".." nor through a symbolic link.
type folder struct {
	root *os.Root // nil without a directory
	name string   // for messages
	path []string // files being read, outermost first
}

// Include replaces all "!include" tags of a document, and references to nodes by hash.
func Include(r *Report, root *yamldoc.Node, src From) *yamldoc.Node {
	in := &includer{Report: r, node: src.Node, schemas: src.Schemas}
	if !in.hasIncludes(root) {
		return root
	}
	return in.resolve(root, folder{
		root: src.Dir, name: filepath.Dir(src.File), path: []string{filepath.Base(cmp.Or(src.Path, src.File))},
	})
}

func (in *includer) hasIncludes(n *yamldoc.Node) bool {
	if n.Tag == Tag {
		return true
	}
	for _, e := range n.Entries {
		if _, ok := in.referenceIn(e); ok || in.hasIncludes(e.Value) {
			return true
		}
	}
	return slices.ContainsFunc(n.Items, in.hasIncludes)
}

// resolve returns a copy of a tree with its tags replaced. It doesn't modify the original, because aliases
// share nodes.
func (in *includer) resolve(n *yamldoc.Node, from folder) *yamldoc.Node {
	if in.values++; in.values > maxValues {
		in.stop(n.Pos, "the workflow has more than %d values, including its includes", maxValues)
	}
	if in.stopped {
		return n
	}
	if n.Tag == Tag {
		return in.include(n, from)
	}
	c := *n
	c.Entries, c.Items = slices.Clone(n.Entries), slices.Clone(n.Items)
	for i, e := range c.Entries {
		if hash, ok := in.referenceIn(e); ok {
			c.Entries[i].Value = in.reference(e.Value, hash, from)
			continue
		}
		c.Entries[i].Value = in.resolve(e.Value, from)
	}
	for i := range c.Items {
		c.Items[i] = in.resolve(c.Items[i], from)
	}
	return &c
}

// stop reports an exceeded bound and stops reading files.
func (in *includer) stop(at yamldoc.Pos, format string, args ...any) {
	if !in.stopped {
		in.Add(at, "", format, args...)
		in.stopped = true
	}
}

// include reads the file of a tag. If it can't, it reports the error and returns the tag unchanged; see
// [IsUnread].
func (in *includer) include(tag *yamldoc.Node, from folder) *yamldoc.Node {
	name, ok := tag.Scalar.(string)
	if tag.Kind != yamldoc.Scalar || !ok || strings.TrimSpace(name) == "" {
		in.Add(tag.Pos, "!include file.md", "!include needs a file name, not %s", KindOf(tag))
		return tag
	}
	if from.root == nil {
		in.Add(tag.Pos, "write the text here, as a block (|)", "!include works only in a file")
		return tag
	}
	if !in.mayInclude(tag.Pos, from, name) {
		return tag
	}
	name = path.Clean(filepath.ToSlash(name))
	full := path.Join(path.Dir(from.path[len(from.path)-1]), name)
	if slices.Contains(from.path, full) {
		in.Add(tag.Pos, "", "include cycle: %s", chain(from.path, full))
		return tag
	}
	data, err := in.read(from.root, name)
	if err != nil {
		in.Add(tag.Pos, in.fileRemedy(err, from, name), "cannot include %s: %v", Quote(name), cause(err))
		return tag
	}
	return in.content(tag, from, name, full, data)
}

// mayInclude counts a file and reports an exceeded bound.
func (in *includer) mayInclude(at yamldoc.Pos, from folder, name string) bool {
	in.includes++
	switch {
	case in.includes > maxIncludes:
		in.stop(at, "more than %d files are included", maxIncludes)
	case len(from.path) > maxIncludeDepth:
		in.stop(at, "includes are nested more than %d levels deep: %s", maxIncludeDepth, chain(from.path, name))
	}
	return !in.stopped
}

// content converts a file to a node.
func (in *includer) content(tag *yamldoc.Node, from folder, name, full string, data []byte) *yamldoc.Node {
	shown := filepath.Join(from.name, filepath.FromSlash(name))
	switch strings.ToLower(path.Ext(name)) {
	case ".yaml", ".yml":
	case ".json":
		// JSON can be indented with tabs, YAML can't. JSON texts never contain a raw tab.
		data = []byte(strings.ReplaceAll(string(data), "\t", " "))
	default:
		return in.text(tag, shown, name, data)
	}
	shift := in.addFile(shown, data, false)
	doc, err := yamldoc.Parse(data, yamldoc.Bounds{})
	if err != nil {
		in.AddYAML(err, shift)
		return tag
	}
	root := shifted(doc.Root, shift)
	if !in.hasIncludes(root) {
		return in.resolve(root, from) // counts its values
	}
	dir, err := from.root.OpenRoot(path.Dir(name))
	if err != nil {
		in.Add(tag.Pos, "", "cannot include from the directory of %s: %v", Quote(name), cause(err))
		return tag
	}
	defer func() { _ = dir.Close() }() // opened for reading only
	return in.resolve(root, folder{root: dir, name: filepath.Dir(shown), path: append(slices.Clone(from.path), full)})
}

// text returns the node for a file that is neither YAML nor JSON.
func (in *includer) text(tag *yamldoc.Node, shown, name string, data []byte) *yamldoc.Node {
	if !utf8.Valid(data) {
		in.Add(tag.Pos, "save it as UTF-8", "cannot include %s: not UTF-8 text", Quote(name))
		return tag
	}
	shift := in.addFile(shown, data, true)
	text := strings.ReplaceAll(strings.TrimPrefix(string(data), "\ufeff"), "\r\n", "\n")
	return &yamldoc.Node{Kind: yamldoc.Scalar, Scalar: text, Text: text, Pos: yamldoc.Pos{Line: shift + 1, Column: 1}}
}

var (
	errAbsolute = errors.New("the path must be relative to the file that includes it")
	errNoFile   = errors.New("not a regular file")
	errTooLarge = fmt.Errorf("larger than %d bytes", maxIncludeFile)
	errAllBytes = fmt.Errorf("all included files together are larger than %d bytes", maxIncludeBytes)
)

// read reads a file in a directory.
func (in *includer) read(dir *os.Root, name string) ([]byte, error) {
	if path.IsAbs(name) || filepath.IsAbs(name) {
		return nil, errAbsolute
	}
	data, err := safeopen.ReadFileIn(dir, name, maxIncludeFile)
	in.bytes += len(data)
	var odd *safeopen.NotFileError
	var big *safeopen.TooBigError
	switch {
	case errors.As(err, &odd):
		return nil, errNoFile
	case errors.As(err, &big):
		return nil, errTooLarge
	case err != nil:
		return nil, err
	case in.bytes > maxIncludeBytes:
		return nil, errAllBytes
	}
	return data, nil
}

// fileRemedy suggests files with a similar name.
func (in *includer) fileRemedy(err error, from folder, name string) string {
	if !errors.Is(err, fs.ErrNotExist) {
		return "include only files in or below the directory of the including file"
	}
	const relative = "give a path relative to the including file"
	entries, err := fs.ReadDir(from.root.FS(), path.Dir(name))
	if err != nil {
		return relative
	}
	var names []string
	for _, e := range entries {
		names = append(names, path.Join(path.Dir(name), e.Name()))
	}
	if near := Nearest(name, names); len(near) > 0 {
		return "did you mean " + QuoteList(near, " or ") + "?"
	}
	return relative
}

// cause returns an error without the operation and path, which the message already contains.
func cause(err error) error {
	var p *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("no such file")
	case errors.As(err, &p):
		return p.Err
	}
	return err
}

// chain formats a chain of includes.
func chain(files []string, last string) string {
	return strings.Join(append(slices.Clone(files), last), " → ")
}

// IsUnread reports whether a node is a tag whose file could not be read. The error is already reported, so
// the node needs no further checks.
func IsUnread(n *yamldoc.Node) bool { return n.Tag == Tag }

// files contains the main file and the files it includes. As in go/token, they form a single text: the lines
// of an included file follow those of the previous files. A yamldoc.Pos in the draft is a position in that
// text, so code that looks up a position doesn't need to know the file.
type files struct {
	names  []string // for messages
	begins []int    // for each file, the number of lines before it
	plain  []bool   // whether it is a plain text instead of YAML
	lines  []string
}

// addFile appends a file and returns the offset of its line numbers.
func (f *files) addFile(name string, data []byte, plain bool) (shift int) {
	text := strings.TrimPrefix(string(data), "\ufeff")
	text = strings.ReplaceAll(text, "\r\n", "\n")
	shift = len(f.lines)
	f.names = append(f.names, name)
	f.begins = append(f.begins, shift)
	f.plain = append(f.plain, plain)
	f.lines = append(f.lines, strings.Split(strings.ReplaceAll(text, "\r", "\n"), "\n")...)
	return shift
}

// where returns the file, and the line in it, for a line of the whole text.
func (f *files) where(line int) (name string, inFile int) {
	i := f.of(line)
	return f.names[i], line - f.begins[i]
}

// isPlain reports whether a line belongs to a plain text.
func (f *files) isPlain(line int) bool { return f.plain[f.of(line)] }

// of returns the index of a line's file.
func (f *files) of(line int) int { return max(0, sort.SearchInts(f.begins, line)-1) }

// Included reports whether a line belongs to an included file.
func (f *files) Included(line int) bool { return f.of(line) > 0 }

// line returns a line of the whole text, from 1, or "".
func (f *files) line(n int) string {
	if n < 1 || n > len(f.lines) {
		return ""
	}
	return f.lines[n-1]
}

// shifted returns a copy of a tree with shifted line numbers. It has to copy, because an alias shares its
// anchor's nodes.
func shifted(n *yamldoc.Node, by int) *yamldoc.Node {
	if by == 0 {
		return n
	}
	c := *n
	c.Pos.Line += by
	c.Entries = make([]yamldoc.Entry, len(n.Entries))
	for i, e := range n.Entries {
		e.Pos.Line += by
		e.Value = shifted(e.Value, by)
		c.Entries[i] = e
	}
	c.Items = make([]*yamldoc.Node, len(n.Items))
	for i, item := range n.Items {
		c.Items[i] = shifted(item, by)
	}
	return &c
}

// referenceIn reports whether an entry refers to a stored node: {$ref: hash}, or only the hash where a role's
// schema is expected.
func (in *includer) referenceIn(e yamldoc.Entry) (protocol.Hash, bool) {
	n := e.Value
	if n.Kind == yamldoc.Mapping && len(n.Entries) == 1 && n.Entries[0].Key == "$ref" {
		n = n.Entries[0].Value
	} else if !slices.Contains(in.schemas, e.Key) {
		return "", false
	}
	if text, ok := n.Scalar.(string); ok && n.Tag == "" {
		hash, err := protocol.ParseHash(text)
		return hash, err == nil
	}
	return "", false
}

// reference replaces a reference with the payload of the stored node. Its positions are those of its JSON, as
// `ocas get` prints it.
func (in *includer) reference(n *yamldoc.Node, hash protocol.Hash, from folder) *yamldoc.Node {
	if !in.mayInclude(n.Pos, from, string(hash)) {
		return Unread(n)
	}
	payload, err := in.payload(hash)
	if err != nil {
		in.Add(n.Pos, "write its content instead", "cannot read node %s: %v", hash, err)
		return Unread(n)
	}
	data, err := json.MarshalIndent(payload, "", "  ")
	if err == nil && len(data) > maxIncludeFile {
		err = errTooLarge
	}
	if err != nil {
		in.Add(n.Pos, "", "cannot use node %s: %v", hash, err)
		return Unread(n)
	}
	shift := in.addFile("node "+string(hash), data, false)
	doc, err := yamldoc.Parse(data, yamldoc.Bounds{})
	if err != nil {
		in.AddYAML(err, shift)
		return Unread(n)
	}
	within := folder{name: filepath.Dir(from.name), path: append(slices.Clone(from.path), string(hash))}
	return in.resolve(shifted(doc.Root, shift), within)
}

var errNoStore = errors.New("no store")

func (in *includer) payload(hash protocol.Hash) (any, error) {
	if in.node == nil {
		return nil, errNoStore
	}
	return in.node(hash)
}
