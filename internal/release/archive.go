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

// target is a platform for which archives are built.
type target struct{ os, arch string }

func targets() []target {
	return []target{
		{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
	}
}

// targetsNamed parses a list such as "linux/amd64"; an empty list means all targets.
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

// delivery holds the parameters for building archives.
type delivery struct {
	out     string // directory
	version string
	when    time.Time // time of the commit, used for every file, so that the same tree gives the same bytes
	targets []target
	nfpm    string // the program that builds Debian packages; "" builds none
}

// archives writes everything needed for an installation: for each target an archive with all commands and
// their bill of materials, for Linux a Debian package, the Homebrew formula, the installer, and the checksums
// of all of these.
func (t *tree) archives(ctx context.Context, d delivery, p process) (err error) {
	if d.when, err = t.commitTime(ctx, p); err != nil {
		return err
	}
	o, err := t.newOutside(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.close()) }()
	if err := t.publishAll(ctx, o.proxy, d.version); err != nil {
		return err
	}
	if err := o.downloadAll(ctx, t, d.version, o.dir, p); err != nil {
		return err
	}
	if err := os.MkdirAll(d.out, 0o755); err != nil {
		return err
	}
	sums := &checksums{}
	for _, to := range d.targets {
		files, err := t.members(ctx, o, to, d, p)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", to.os, to.arch, err)
		}
		name, data, err := to.pack(d, files)
		if err != nil {
			return fmt.Errorf("%s/%s: %w", to.os, to.arch, err)
		}
		if err := d.write(sums, name, data, p); err != nil {
			return err
		}
		if to.os != "linux" || d.nfpm == "" {
			continue
		}
		if name, data, err = t.deb(ctx, to.arch, d, files, p); err != nil {
			return fmt.Errorf("debian package for %s: %w", to.arch, err)
		}
		if err := d.write(sums, name, data, p); err != nil {
			return err
		}
	}
	if err := t.installers(d, sums, p); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(d.out, "SHA256SUMS"), []byte(sums.text()), 0o644)
}

// write writes a file to the directory and adds its checksum.
func (d delivery) write(sums *checksums, name string, data []byte, p process) error {
	sums.add(name, data)
	fmt.Fprintln(p.stdout, "archive", name)
	return os.WriteFile(filepath.Join(d.out, name), data, 0o644)
}

// checksums holds the SHA-256 checksums of files, in the order of their creation.
type checksums struct{ names, sums []string }

func (c *checksums) add(name string, data []byte) {
	c.names, c.sums = append(c.names, name), append(c.sums, fmt.Sprintf("%x", sha256.Sum256(data)))
}

// of returns the only file with a suffix and its checksum, or "".
func (c *checksums) of(suffix string) (name, sum string) {
	for i, name := range c.names {
		if strings.HasSuffix(name, suffix) {
			return name, c.sums[i]
		}
	}
	return "", ""
}

// text returns the list in the format of sha256sum.
func (c *checksums) text() string {
	var out strings.Builder
	for i, name := range c.names {
		fmt.Fprintf(&out, "%s  %s\n", c.sums[i], name)
	}
	return out.String()
}

// members builds all commands for one platform, as "go install" would, so that they know their version, and
// adds licences and the bill of materials.
func (t *tree) members(ctx context.Context, o *outside, to target, d delivery, p process) ([]member, error) {
	programs, err := t.programs(nil)
	if err != nil {
		return nil, err
	}
	files := []member{}
	for _, name := range []string{"LICENSE", "README.md"} {
		data, err := os.ReadFile(filepath.Join(t.root, name))
		if err != nil {
			return nil, err
		}
		files = append(files, member{name, data, 0o644})
	}
	var binaries [][]byte
	for _, built := range programs {
		data, err := o.binary(ctx, built, to, d.version, p)
		if err != nil {
			return nil, err
		}
		binaries = append(binaries, data)
		name := built.name()
		if to.os == "windows" {
			name += ".exe"
		}
		files = append(files, member{name, data, 0o755})
	}
	used, err := t.linked(binaries)
	if err != nil {
		return nil, err
	}
	third, err := t.notices(ctx, o, used, p)
	if err != nil {
		return nil, err
	}
	bill, err := billOfMaterials(d, used)
	if err != nil {
		return nil, err
	}
	return append(files, member{noticesFile, third, 0o644}, member{bomFile, bill, 0o644}), nil
}

// pack builds the usual kind of archive for a platform.
func (to target) pack(d delivery, files []member) (name string, data []byte, err error) {
	base := fmt.Sprintf("uwf_%s_%s_%s", d.version, to.os, to.arch)
	if to.os == "windows" {
		data, err := zipArchive(base, files, d.when)
		return base + ".zip", data, err
	}
	data, err = tarArchive(base, files, d.when)
	return base + ".tar.gz", data, err
}

// binary installs a command for another platform, into a separate directory, because go then rejects GOBIN.
func (o *outside) binary(ctx context.Context, built program, to target, version string, p process) ([]byte, error) {
	gopath := filepath.Join(o.dir, "cross", to.os+"_"+to.arch)
	cmd := exec.CommandContext(ctx, "go", "install", "-trimpath", "-ldflags=-s -w", string(built)+"@"+version)
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
	if errors.Is(err, os.ErrNotExist) { // the host's own platform
		data, err = os.ReadFile(filepath.Join(gopath, "bin", name))
	}
	return data, err
}

func (t *tree) commitTime(ctx context.Context, p process) (time.Time, error) {
	out, err := t.git(ctx, p, "log", "-1", "--format=%cI")
	if err != nil {
		return time.Time{}, err
	}
	return time.Parse(time.RFC3339, strings.TrimSpace(out))
}

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
