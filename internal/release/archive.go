package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// target is a system that archives are made for.
type target struct{ os, arch string }

func targets() []target {
	return []target{
		{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
	}
}

// targetsNamed are the targets that a list names, such as "linux/amd64"; none
// are all.
func targetsNamed(list string) ([]target, error) {
	if list == "" {
		return targets(), nil
	}
	var out []target
	for _, name := range strings.Split(list, ",") {
		i := slices.IndexFunc(targets(), func(t target) bool { return t.os+"/"+t.arch == name })
		if i < 0 {
			return nil, fmt.Errorf("no archives are made for %q", name)
		}
		out = append(out, targets()[i])
	}
	return out, nil
}

// member is a file of an archive.
type member struct {
	name string
	data []byte
	mode int64
}

// archives writes one archive for each target, with all commands, and their
// checksums. The same tree gives the same bytes: members are sorted, and all have
// the time of the commit.
func (t *tree) archives(ctx context.Context, out, version string, targets []target, p process) (err error) {
	when, err := t.commitTime(ctx, p)
	if err != nil {
		return err
	}
	o, err := t.newOutside(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	if err := t.publishAll(ctx, o.proxy, version); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	var sums strings.Builder
	for _, to := range targets {
		name, data, err := t.archive(ctx, o, to, version, when, p)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", to.os, to.arch, err)
		}
		if err := os.WriteFile(filepath.Join(out, name), data, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(data), name)
		fmt.Fprintln(p.stdout, "archive", name)
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

// archive builds all commands for one system, as "go install" would, so that
// they know their version, and packs them.
func (t *tree) archive(ctx context.Context, o *outside, to target, version string, when time.Time, p process) (string, []byte, error) {
	programs, err := t.programs(nil)
	if err != nil {
		return "", nil, err
	}
	files := []member{}
	for _, name := range []string{"LICENSE", "README.md"} {
		data, err := os.ReadFile(filepath.Join(t.root, name))
		if err != nil {
			return "", nil, err
		}
		files = append(files, member{name, data, 0o644})
	}
	var binaries [][]byte
	for _, built := range programs {
		data, err := o.binary(ctx, built, to, version, p)
		if err != nil {
			return "", nil, err
		}
		binaries = append(binaries, data)
		name := built.name()
		if to.os == "windows" {
			name += ".exe"
		}
		files = append(files, member{name, data, 0o755})
	}
	third, err := t.notices(ctx, o, binaries, p)
	if err != nil {
		return "", nil, err
	}
	files = append(files, member{noticesFile, third, 0o644})
	base := fmt.Sprintf("uwf_%s_%s_%s", version, to.os, to.arch)
	if to.os == "windows" {
		data, err := zipArchive(base, files, when)
		return base + ".zip", data, err
	}
	data, err := tarArchive(base, files, when)
	return base + ".tar.gz", data, err
}

// binary installs a command for another system, into a directory of its own:
// go refuses GOBIN then.
func (o *outside) binary(ctx context.Context, built program, to target, version string, p process) ([]byte, error) {
	gopath := filepath.Join(o.dir, "cross", to.os+"_"+to.arch)
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", string(built)+"@"+version)
	cmd.Dir, cmd.Stdout, cmd.Stderr = o.dir, p.stdout, p.stderr
	cmd.Env = append(o.env[:len(o.env):len(o.env)], "GOBIN=", "GOPATH="+gopath, "GOOS="+to.os, "GOARCH="+to.arch, "CGO_ENABLED=0")
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go install %s: %w", built, err)
	}
	name := built.name()
	if to.os == "windows" {
		name += ".exe"
	}
	data, err := os.ReadFile(filepath.Join(gopath, "bin", to.os+"_"+to.arch, name))
	if errors.Is(err, os.ErrNotExist) { // this machine's own system
		data, err = os.ReadFile(filepath.Join(gopath, "bin", name))
	}
	return data, err
}

// commitTime is when the tree was committed.
func (t *tree) commitTime(ctx context.Context, p process) (time.Time, error) {
	out, err := t.git(ctx, p, "log", "-1", "--format=%cI")
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, strings.TrimSpace(out))
}

// git runs git in the tree and returns what it prints.
func (t *tree) git(ctx context.Context, p process, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env, cmd.Stderr = t.root, p.environ, p.stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
	}
	return string(out), nil
}

func tarArchive(base string, files []member, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for _, f := range files {
		header := &tar.Header{Name: base + "/" + f.name, Mode: f.mode, Size: int64(len(f.data)), ModTime: when.UTC(), Format: tar.FormatPAX}
		if err := w.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := w.Write(f.data); err != nil {
			return nil, err
		}
	}
	err := errors.Join(w.Close(), z.Close())
	return out.Bytes(), err
}

func zipArchive(base string, files []member, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	w := zip.NewWriter(&out)
	for _, f := range files {
		header := &zip.FileHeader{Name: base + "/" + f.name, Method: zip.Deflate, Modified: when.UTC()}
		header.SetMode(os.FileMode(f.mode))
		entry, err := w.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := io.Copy(entry, bytes.NewReader(f.data)); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return out.Bytes(), err
}
