// Package gitconfig merges the private copy of a repository's config into the real one.
//
// A sandboxed command writes its settings to a copy. Only remotes, branches, submodules and the user's
// identity are merged; any other setting is dropped and reported.
package gitconfig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/utilagent/box/endcheck"
)

// Bounds on input and output that a command controls.
const (
	maxConfig    = 1 << 20
	maxChanges   = 500 // each change is a git process
	lockPatience = 2 * time.Second
)

// Merging describes one merge. Paths are absolute.
type Merging struct {
	Root    *os.Root // the directory of the config: a path could lead elsewhere by now
	Name    string   // of the config in Root
	Copy    string
	Base    []byte // content of the config when the command began
	Dir     string // top of the work tree; git is not searched for there
	Environ []string
}

// settings maps each key, such as "remote.origin.url", to its values.
type settings map[string][]string

// Merge writes the permitted changes in Copy to the config. It returns messages about changes that a person must
// know; each completes a line that starts with "a command". Without changes it starts no process.
func Merge(ctx context.Context, m Merging) (messages []string, err error) {
	text, err := safeopen.ReadFile(m.Copy, maxConfig, safeopen.NoFollow)
	switch {
	case endcheck.Short(err):
		return nil, err // it can be read later
	case err != nil:
		return []string{unreadable}, nil
	}
	return m.Text(ctx, text)
}

const unreadable = "left an unreadable git config; its settings were discarded"

// Text is like [Merge] but takes the text of the copy.
func (m Merging) Text(ctx context.Context, text []byte) (messages []string, err error) {
	if bytes.Equal(text, m.Base) {
		return nil, nil
	}
	c, messages, err := m.choose(ctx, text)
	if c == nil || err != nil {
		return messages, err
	}
	if len(c.wanted) > 0 {
		if c, err = m.write(ctx, c.base, c.changed); err != nil {
			return nil, fmt.Errorf("merge settings into %s: %w", filepath.Join(m.Root.Name(), m.Name), err)
		}
	}
	return c.reports(), nil
}

// choose decides which of a text's changes to merge. For a text without any, the choice is nil.
func (m Merging) choose(ctx context.Context, text []byte) (_ *choice, messages []string, err error) {
	base, err := m.read(ctx, m.Base)
	if err != nil {
		return nil, nil, fmt.Errorf("read the git config as it was: %w", err)
	}
	changed, err := m.read(ctx, text)
	if ctx.Err() != nil {
		return nil, nil, ctx.Err()
	}
	if err != nil {
		return nil, []string{"left an invalid git config; its settings were discarded"}, nil
	}
	c := newChoice(base, changed)
	if len(c.wanted) > maxChanges {
		return nil, []string{fmt.Sprintf("changed %d git settings; they were discarded", len(c.wanted))}, nil
	}
	return c, nil, nil
}

// read parses a config with git's own rules.
func (m Merging) read(ctx context.Context, text []byte) (settings, error) {
	out, err := m.git(ctx, text, "config", "--file", "-", "--null", "--list", "--no-includes")
	if err != nil {
		return nil, err
	}
	found := settings{}
	for entry := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		if key, value, ok := strings.Cut(entry, "\n"); ok {
			found[key] = append(found[key], value)
		} else if key != "" {
			found[key] = append(found[key], "\n") // a key without a value, which none of the merged keys has
		}
	}
	return found, nil
}

// write applies the changes to the config as it is now, so that concurrent changes are kept.
func (m Merging) write(ctx context.Context, base, changed settings) (*choice, error) {
	for {
		text, err := safeopen.ReadFileIn(m.Root, m.Name, maxConfig)
		if err != nil {
			return nil, err
		}
		real, err := m.read(ctx, text)
		if err != nil {
			return nil, err
		}
		c := newChoice(base, changed)
		edited, err := m.edit(ctx, text, c.edits(real))
		if err != nil {
			return nil, err
		}
		if done, err := m.put(ctx, text, edited); done || err != nil {
			return c, err
		}
	}
}

// edit returns a config with changes made by git.
func (m Merging) edit(ctx context.Context, text []byte, edits [][]string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "uwf-config-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }() // a copy in the directory for temporary files
	file := filepath.Join(dir, "config")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	for _, args := range edits {
		if _, err := m.git(ctx, nil, append([]string{"config", "--file", file}, args...)...); err != nil {
			return nil, err
		}
	}
	return os.ReadFile(file)
}

// put changes the text of the config, under git's own lock, unless it is no longer old. It writes to the file itself:
// a new file in its place would remove the mounts over it, which protect it from commands that are still running.
func (m Merging) put(ctx context.Context, old, text []byte) (done bool, err error) {
	unlock, err := m.lock(ctx)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	now, err := safeopen.ReadFileIn(m.Root, m.Name, maxConfig)
	if err != nil || !bytes.Equal(now, old) {
		return false, err
	}
	if bytes.Equal(text, old) {
		return true, nil
	}
	f, err := m.Root.OpenFile(m.Name, os.O_RDWR, 0) // a pipe wouldn't block
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case durable.HasOtherNames(info): // it may be the config of a copied repository
		err = endcheck.Replace(m.Root, m.Name, text, info.Mode().Perm())
	default:
		err = overwrite(f, old, text)
	}
	return true, errors.Join(err, f.Close())
}

// overwrite changes the text of a file from old. A reader sees a valid config at any time, and nothing changes if the
// disk is full.
func overwrite(f *os.File, old, text []byte) error {
	size := int64(len(old))
	_, err := f.WriteAt(lineFeeds(len(text)-len(old)), size)
	if err == nil {
		_, err = f.WriteAt(slices.Concat(text, lineFeeds(len(old)-len(text))), 0)
	}
	if err == nil {
		return f.Truncate(int64(len(text)))
	}
	_, failed := f.WriteAt(old, 0)
	return errors.Join(err, failed, f.Truncate(size))
}

func lineFeeds(n int) []byte { return bytes.Repeat([]byte("\n"), max(0, n)) }

// lock creates git's lock on the config, after another git that holds it has ended. It doesn't wait for a lock that was
// there long before the copy was changed: that was abandoned, and every step would wait for it.
func (m Merging) lock(ctx context.Context) (unlock func() error, err error) {
	ctx, cancel := context.WithTimeout(ctx, lockPatience)
	defer cancel()
	name := m.Name + ".lock"
	for {
		f, err := m.Root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			return func() error { return m.Root.Remove(name) }, f.Close()
		}
		held, gone := m.Root.Lstat(name)
		copied, lost := os.Lstat(m.Copy)
		if gone == nil && lost == nil && copied.ModTime().Sub(held.ModTime()) > lockPatience {
			return nil, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Restore undoes the changes in a config that another program replaced while the command was running, except the
// permitted ones. The mount that protected it was removed then, so the command may have changed it as well, put
// anything in its place, given it other names, or left a lock.
func (m Merging) Restore(ctx context.Context, perm fs.FileMode) (messages []string, err error) {
	if unlock, err := m.lock(ctx); err == nil {
		defer func() { _ = unlock() }() // the next merge reports it
	}
	text, messages := m.Base, []string{unreadable}
	left, err := safeopen.ReadFileIn(m.Root, m.Name, maxConfig)
	switch {
	case err == nil:
		text, messages, err = m.kept(ctx, left)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	default:
		err = endcheck.Aside(m.Root, m.Name)
	}
	return messages, errors.Join(err, endcheck.Replace(m.Root, m.Name, text, perm))
}

// kept returns the original config with the permitted changes from left.
func (m Merging) kept(ctx context.Context, left []byte) (text []byte, messages []string, err error) {
	c, messages, err := m.choose(ctx, left)
	if c != nil {
		text, err = m.edit(ctx, m.Base, c.edits(c.base))
		messages = c.reports()
	}
	if text == nil {
		text = m.Base
	}
	return text, messages, err
}

// differing returns the sorted keys whose values differ.
func differing(a, b settings) []string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	maps.DeleteFunc(all, func(key string, _ []string) bool { return slices.Equal(a[key], b[key]) })
	return slices.Sorted(maps.Keys(all))
}

// maxPrinted bounds git's output for a config, in bytes.
const maxPrinted = 16 << 20

// git runs git outside any repository and without the user's settings.
func (m Merging) git(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	program, err := proc.LookPath("git", m.Dir, m.Environ)
	if err != nil {
		return nil, err
	}
	environ := slices.DeleteFunc(slices.Clone(m.Environ), func(v string) bool { return strings.HasPrefix(v, "GIT_") })
	out, err := proc.Run(ctx, proc.Command{
		Path: program, Args: args, Dir: "/", Env: append(environ, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"), Session: true,
	}, bytes.NewReader(stdin), maxPrinted, time.Second)
	if err == nil && (out.Code != 0 || out.Cut) {
		err = fmt.Errorf("exit status %d", out.Code)
	}
	if err != nil {
		return nil, fmt.Errorf("git config: %w: %s", err, plaintext.Line(strings.TrimSpace(string(out.Stderr))))
	}
	return out.Stdout, nil
}

var (
	remoteName = lazyregexp.New(`^[\pL\pN_][\pL\pN_./+-]*$`) // neither an address nor an option
	refspec    = lazyregexp.New(`^([+^]?(HEAD|refs/[^\s:?\[\\^~]+)|\+?(HEAD|refs/[^\s:?\[\\^~]+):refs/remotes/[^\s:?\[\\^~]+)$`)
	ref        = lazyregexp.New(`^refs/[^\s:?*\[\\^~]+$`)
	rebaseMode = lazyregexp.New(`^(true|false|merges|interactive)$`)
	// Git itself asks before it fetches a submodule from a directory, and never pushes to one.
	submodulePath = lazyregexp.New(`^\.{0,2}/[^:]*$`)
	scpForm       = lazyregexp.New(`^([\w.+-]+@)?([\w.-]+|\[[0-9A-Fa-f:.]+\]):[^:]*$`)
	boolean       = lazyregexp.New(`^(true|false)$`)
)

// choice holds a command's changes and decides which of them to merge.
type choice struct {
	base, changed settings
	wanted        settings // empty values remove the key
	dropped       []string
	lines         []string
}

func newChoice(base, changed settings) *choice {
	c := &choice{base: base, changed: changed, wanted: settings{}}
	for _, key := range differing(base, changed) {
		if values := changed[key]; c.may(key, values) {
			c.wanted[key] = values
		} else {
			c.dropped = append(c.dropped, key)
		}
	}
	return c
}

// split splits a key into its section, subsection and name.
func split(key string) (section, sub, name string) {
	section, rest, _ := strings.Cut(key, ".")
	if at := strings.LastIndexByte(rest, '.'); at >= 0 {
		return section, rest[:at], rest[at+1:]
	}
	return section, "", rest
}

// may reports whether a key may get these values. Removing a remote or branch removes all of its keys.
func (c *choice) may(key string, values []string) bool {
	section, sub, name := split(key)
	if sub != "" && (sub[0] == '-' || strings.Contains(sub, "..") || plaintext.Line(sub) != sub) {
		return false
	}
	if len(values) == 0 && (section == "remote" || section == "branch") && sub != "" && !c.changed.has(section, sub) {
		return true
	}
	var valid func(value string) bool
	switch section + "." + name {
	case "remote.url", "remote.pushurl":
		valid = func(value string) bool { return remoteName().MatchString(sub) && c.address(value) }
	case "remote.fetch":
		valid = func(value string) bool {
			return remoteName().MatchString(sub) && refspec().MatchString(value) && !strings.Contains(value, "..")
		}
	case "submodule.url":
		valid = func(value string) bool { return c.address(value) || submodulePath().MatchString(value) }
	case "submodule.active":
		valid = boolean().MatchString
	case "branch.merge":
		valid = ref().MatchString
	case "branch.rebase":
		valid = rebaseMode().MatchString
	case "branch.remote", "branch.description", "user.name", "user.email": // remotes are judged once all are known
		valid = func(string) bool { return true }
	}
	if valid == nil || (section == "user") != (sub == "") {
		return false
	}
	return !slices.ContainsFunc(values, func(v string) bool { return plaintext.Line(v) != v || !valid(v) })
}

// address reports whether a remote may have a URL: git reaches it without running a program chosen by the
// command, or a remote had it before.
func (c *choice) address(value string) bool {
	if address(value) {
		return true
	}
	for key, values := range c.base {
		if strings.HasSuffix(key, "url") && slices.Contains(values, value) {
			return true
		}
	}
	return false
}

// has reports whether a section has any key.
func (s settings) has(section, sub string) bool {
	for key := range s {
		if strings.HasPrefix(key, section+"."+sub+".") {
			return true
		}
	}
	return false
}

// edits returns the git arguments that apply the changes to the real config. Concurrent changes by others are
// kept.
func (c *choice) edits(real settings) (all [][]string) {
	final := maps.Clone(real)
	for key, values := range c.wanted {
		if slices.Equal(real[key], c.base[key]) || slices.Equal(real[key], values) {
			final[key] = values
		} else {
			c.drop(key, nil, nil)
		}
	}
	c.settle(real, final)
	for _, key := range slices.Sorted(maps.Keys(c.wanted)) {
		if !slices.Equal(c.base[key], final[key]) {
			c.report(key, final[key]) // also what an interrupted merge has done
		}
		if slices.Equal(real[key], final[key]) {
			continue
		}
		if len(final[key]) == 0 {
			all = append(all, []string{"--unset-all", key})
		}
		for i, value := range final[key] {
			how := "--add"
			if i == 0 {
				how = "--replace-all"
			}
			all = append(all, []string{how, "--", key, value})
		}
	}
	return all
}

// settle drops changes after which git would take a name for an address: a branch or remote without a URL.
func (c *choice) settle(real, final settings) {
	for _, key := range slices.SortedFunc(maps.Keys(c.wanted), func(a, b string) int { return strings.Compare(b, a) }) { // remotes first
		section, sub, name := split(key)
		homeless := func(v string) bool { return v != "." && len(final["remote."+v+".url"]) == 0 && !address(v) }
		switch {
		case section == "remote" && name != "url" && len(final[key]) > 0 && len(final["remote."+sub+".url"]) == 0,
			section == "branch" && name == "remote" && slices.ContainsFunc(final[key], homeless):
			c.drop(key, real, final)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(c.wanted)) {
		section, sub, name := split(key)
		if section != "remote" || name != "url" || len(final[key]) > 0 || !final.pointsTo(sub) {
			continue
		}
		for other := range maps.Clone(c.wanted) {
			if strings.HasPrefix(other, "remote."+sub+".") {
				c.drop(other, real, final)
			}
		}
	}
}

// pointsTo reports whether a branch fetches from or pushes to a remote.
func (s settings) pointsTo(remote string) bool {
	for key, values := range s {
		section, _, name := split(key)
		if slices.Contains(values, remote) && (section == "branch" && (name == "remote" || name == "pushremote") || key == "remote.pushdefault") {
			return true
		}
	}
	return false
}

// drop keeps a key as it is in the real config. final may be nil.
func (c *choice) drop(key string, real, final settings) {
	delete(c.wanted, key)
	c.dropped = append(c.dropped, key)
	if final != nil {
		final[key] = real[key]
	}
}

const maxNames = 10

// report records a change that a person must know: to remote URLs and to the commit identity.
func (c *choice) report(key string, is []string) {
	section, _, name := split(key)
	key = plaintext.Names([]string{plaintext.Short(key, 100)}, 1)
	switch {
	case section == "branch" && (name != "remote" || !slices.ContainsFunc(is, address)), section == "remote" && name == "fetch", name == "active":
	case len(is) == 0:
		c.lines = append(c.lines, "removed git's "+key)
	default:
		c.lines = append(c.lines, "set git's "+key+" to "+plaintext.Names(shown(is), 3))
	}
}

// reports returns the messages for a person.
func (c *choice) reports() []string {
	lines := c.lines
	if more := len(lines) - maxNames; more > 0 {
		lines = append(lines[:maxNames:maxNames], fmt.Sprintf("changed %d more remotes or names", more))
	}
	if len(c.dropped) > 0 {
		slices.Sort(c.dropped)
		names := make([]string, 0, len(c.dropped))
		for _, key := range slices.Compact(c.dropped) {
			names = append(names, plaintext.Short(key, 100))
		}
		lines = append(lines, "set (discarded): "+plaintext.Names(names, maxNames))
	}
	return lines
}

// address reports whether git reaches a URL without running a program chosen by the command. A directory is
// never allowed: the command may have written it, and git push runs the hooks there.
func address(value string) bool {
	if value == "" || value[0] == '-' || strings.Contains(value, "::") {
		return false
	}
	if _, rest, ok := strings.Cut(value, "://"); ok {
		u, err := url.Parse(value)
		authority, _, _ := strings.Cut(rest, "/")
		return err == nil && !strings.Contains(authority, "%") && strings.HasPrefix(value, u.Scheme+":") &&
			slices.Contains([]string{"https", "ssh", "git"}, u.Scheme) && u.Hostname() != "" &&
			u.Hostname()[0] != '-' && !strings.HasPrefix(authority, "-") && !strings.HasPrefix(u.Path, "/-")
	}
	_, path, _ := strings.Cut(value, ":")
	return scpForm().MatchString(value) && !strings.Contains(value, "@-") && !strings.HasPrefix(path, "-")
}

// shown returns addresses without user names and passwords, which may be keys.
func shown(addresses []string) []string {
	all := slices.Clone(addresses)
	for i, address := range all {
		if u, err := url.Parse(address); err == nil && u.User != nil && u.Scheme != "ssh" {
			u.User = nil
			all[i] = u.String()
		}
	}
	return all
}
