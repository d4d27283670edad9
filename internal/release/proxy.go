package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// publishAll puts every module into a proxy of files.
func (t *tree) publishAll(ctx context.Context, proxy, version string) error {
	for _, m := range t.modules {
		if err := t.publish(ctx, proxy, m, version); err != nil {
			return err
		}
	}
	return nil
}

// publish puts one module into a proxy of files, as it would be tagged now. Its
// zip equals the one made from the tag, hash included, because every module
// has its own LICENSE (cmd/go adds the root's to a module without) and files
// that git ignores stay out.
func (t *tree) publish(ctx context.Context, proxy string, m *sibling, version string) error {
	escaped, err := module.EscapePath(m.path)
	if err != nil {
		return err
	}
	at := module.Version{Path: m.path, Version: version}
	gomod, err := t.modAt(m, version)
	if err != nil {
		return err
	}
	files, err := t.files(ctx, m, gomod)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	if err := modzip.Create(&archive, at, files); err != nil {
		return fmt.Errorf("zip %s: %w", at, err)
	}
	info, err := json.Marshal(map[string]string{"Version": version})
	if err != nil {
		return err
	}
	dir := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, version+".info"), info, 0o644),
		os.WriteFile(filepath.Join(dir, version+".mod"), gomod, 0o644),
		os.WriteFile(filepath.Join(dir, version+".zip"), archive.Bytes(), 0o644),
		os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o644),
	)
}

// modAt is the go.mod that the module has at a version: as it is, unless it
// requires its siblings at another one.
func (t *tree) modAt(m *sibling, version string) ([]byte, error) {
	data, err := os.ReadFile(filepath.Join(t.abs(m), "go.mod"))
	if err != nil {
		return nil, err
	}
	changed := false
	for _, r := range m.mod.Require {
		if t.module(r.Mod.Path) == nil || r.Mod.Version == version {
			continue
		}
		if err := m.mod.AddRequire(r.Mod.Path, version); err != nil {
			return nil, err
		}
		changed = true
	}
	if !changed {
		return data, nil
	}
	return m.mod.Format()
}

// files lists what belongs into the module's zip.
func (t *tree) files(ctx context.Context, m *sibling, gomod []byte) ([]modzip.File, error) {
	dir := t.abs(m)
	checked, err := modzip.CheckDir(dir)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", m.path, err)
	}
	ignored := ignoredFiles(ctx, dir)
	var files []modzip.File
	for _, full := range checked.Valid {
		name, err := filepath.Rel(dir, full)
		if err != nil {
			return nil, err
		}
		name = filepath.ToSlash(name)
		switch {
		case name == "go.mod":
			files = append(files, treeFile{dir: dir, name: name, data: gomod})
		case !ignored[name]:
			files = append(files, treeFile{dir: dir, name: name})
		}
	}
	return files, nil
}

// ignoredFiles asks git which files below dir it ignores. Where there is no git
// or no repository (an unpacked archive), nothing is ignored.
func ignoredFiles(ctx context.Context, dir string) map[string]bool {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--others", "--ignored", "--exclude-standard", ".")
	cmd.Dir = dir
	out, err := cmd.Output()
	if err != nil {
		return nil
	}
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		ignored[name] = true
	}
	return ignored
}

// treeFile is a file of the tree, with other content if data is set.
type treeFile struct {
	dir, name string
	data      []byte
}

func (f treeFile) Path() string { return f.name }

func (f treeFile) Lstat() (fs.FileInfo, error) {
	info, err := os.Lstat(filepath.Join(f.dir, filepath.FromSlash(f.name)))
	if err != nil || f.data == nil {
		return info, err
	}
	return sized{info, int64(len(f.data))}, nil
}

func (f treeFile) Open() (io.ReadCloser, error) {
	if f.data != nil {
		return io.NopCloser(bytes.NewReader(f.data)), nil
	}
	return os.Open(filepath.Join(f.dir, filepath.FromSlash(f.name)))
}

// sized is a file's info with the size of what replaces its content.
type sized struct {
	fs.FileInfo
	size int64
}

func (s sized) Size() int64 { return s.size }

// fileURL is the GOPROXY entry for a directory.
func fileURL(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	// A Windows path has no leading slash; a file URL's path has one.
	u := url.URL{Scheme: "file", Path: path.Join("/", filepath.ToSlash(dir))}
	return u.String()
}
