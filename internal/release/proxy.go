package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/module"
	modzip "golang.org/x/mod/zip"
)

// publishAll adds every module to a file proxy.
func (t *tree) publishAll(ctx context.Context, proxy, version string) error {
	for _, m := range t.modules {
		if err := t.publish(ctx, proxy, m, version); err != nil {
			return err
		}
	}
	return nil
}

// publish adds one module to a file proxy in the state in which it would be tagged now. Its zip equals the
// one made from the tag, including the hash, because every module has its own LICENSE (cmd/go adds the root's
// to a module without one) and ignored files are excluded.
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
	var archive bytes.Buffer
	if err := t.zip(ctx, &archive, m, at, gomod); err != nil {
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

// modAt returns the module's go.mod, requiring the siblings at a version.
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

// zip builds the module's zip from the files that git would include, with the given go.mod.
func (t *tree) zip(ctx context.Context, to io.Writer, m *sibling, at module.Version, gomod []byte) (err error) {
	stage, err := os.MkdirTemp("", "uwf-zip-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(stage)) }()
	dir := t.abs(m)
	listed, err := t.git(ctx, process{}, "-C", dir, "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate", ".")
	if err != nil {
		return err
	}
	for name := range strings.SplitSeq(strings.TrimSuffix(listed, "\x00"), "\x00") {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, os.ErrNotExist) {
			continue // removed, not yet committed
		}
		if err := errors.Join(err, writeFile(filepath.Join(stage, name), data)); err != nil {
			return err
		}
	}
	if err := writeFile(filepath.Join(stage, "go.mod"), gomod); err != nil {
		return err
	}
	return modzip.CreateFromDir(to, at, stage)
}

// fileURL returns the GOPROXY entry for a directory.
func fileURL(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		dir = abs
	}
	// A Windows path has no leading slash, but a file URL's path does.
	u := url.URL{Scheme: "file", Path: path.Join("/", filepath.ToSlash(dir))}
	return u.String()
}
