package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// outside runs the go command as a user outside the workspace would, with a private proxy for the tree's
// modules. Its module cache is temporary, because the tree's current v0.1.0 must not remain in the user's
// cache.
type outside struct {
	dir   string // temporary, removed by close
	proxy string
	env   []string
}

// newOutside determines from the user's go command where other people's modules come from: the user's cache,
// and then its proxies.
func (t *tree) newOutside(ctx context.Context, p process) (*outside, error) {
	var user struct{ GOPROXY, GOMODCACHE, GONOSUMDB string }
	cmd := exec.CommandContext(ctx, "go", "env", "-json", "GOPROXY", "GOMODCACHE", "GONOSUMDB")
	cmd.Env, cmd.Dir, cmd.Stderr = p.environ, t.root, p.stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	if err := json.Unmarshal(out, &user); err != nil {
		return nil, fmt.Errorf("go env: %w", err)
	}
	dir, err := os.MkdirTemp("", "uwf-release-")
	if err != nil {
		return nil, err
	}
	o := &outside{dir: dir, proxy: filepath.Join(dir, "proxy")}
	o.env = append(p.environ[:len(p.environ):len(p.environ)],
		"GOWORK=off",
		"GOPROXY="+strings.Join([]string{fileURL(o.proxy), fileURL(filepath.Join(user.GOMODCACHE, "cache", "download")), user.GOPROXY}, ","),
		"GONOPROXY=none", // overrides GOPRIVATE, because siblings come from the proxy
		"GONOSUMDB="+strings.Trim(user.GONOSUMDB+","+t.paths(), ","),
		"GOFLAGS=-modcacherw", // otherwise the temporary cache could not be removed
		"GOMODCACHE="+filepath.Join(dir, "mod"),
		"GOBIN="+filepath.Join(dir, "bin"),
	)
	return o, nil
}

// run runs go in dir and shows its output.
func (o *outside) run(ctx context.Context, p process, dir string, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, o.env, p.stdout, p.stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go %s: %w", strings.Join(args, " "), err)
	}
	return nil
}

// goEnv returns a variable of the go command.
func (o *outside) goEnv(ctx context.Context, p process, name string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "env", name)
	cmd.Dir, cmd.Env, cmd.Stderr = o.dir, o.env, p.stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go env %s: %w", name, err)
	}
	return strings.TrimSpace(string(out)), nil
}

func (o *outside) close() error { return os.RemoveAll(o.dir) }

// paths returns the siblings in the format of GONOSUMDB, because no database has their checksums.
func (t *tree) paths() string {
	var paths []string
	for _, m := range t.modules {
		paths = append(paths, m.path)
	}
	return strings.Join(paths, ",")
}
