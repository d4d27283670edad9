package ocascli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/gc"
	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/terminal"
)

func (c *CLI) export(ctx context.Context, cc *ucli.Context) error {
	s, err := c.existing(ctx)
	if err != nil {
		return err
	}
	var hashes []cas.Hash
	for _, arg := range cc.Args().Slice() {
		h, err := c.meant(ctx, s, arg)
		if err != nil {
			return err
		}
		hashes = append(hashes, h)
	}
	m, err := bundle.CollectNodes(s, hashes)
	if err != nil {
		return err
	}
	written, err := WriteBundle(ctx, c.Env, cc.String("output"), s, m, nil)
	if err != nil || cc.String("output") == "-" {
		return err
	}
	return c.print(written, func(w *bytes.Buffer) { PrintWritten(w, written) })
}

// OutputFlag returns the flag for a bundle's output file.
func OutputFlag() ucli.Flag {
	return &ucli.StringFlag{Name: "output", Aliases: []string{"o"}, Usage: "`FILE` output file; - writes to stdout",
		Required: true}
}

// PrintWritten prints a summary of a bundle in one line.
func PrintWritten(w io.Writer, b bundle.Written) {
	redacted := ""
	if b.Tombstones > 0 {
		redacted = fmt.Sprintf(" and %d that were redacted", b.Tombstones)
	}
	kept := ""
	if b.Trees > 0 {
		kept = ", " + render.Count(b.Trees, "state") + " of the files"
	}
	fmt.Fprintf(w, "%d nodes%s%s, %s\n", b.Nodes, redacted, kept, render.Size(b.Bytes))
}

// WriteBundle atomically writes a bundle to a file, or to stdout unless that is a terminal. It returns the
// errors of [bundle.Write].
func WriteBundle(ctx context.Context, e env.Env, output string, s cas.Reader, m bundle.Manifest,
	files bundle.Objects) (bundle.Written, error) {
	if output == "-" {
		if terminal.Is(e.Stdout) {
			return bundle.Written{}, cmdline.UsageError("cannot write a bundle to a terminal", "-o threads.uwfb")
		}
		return bundle.Write(ctx, e.Stdout, s, m, files)
	}
	path := e.Path(output)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return bundle.Written{}, cmdline.UsageError(output+" is not a file",
			"--output "+plaintext.Word(filepath.Join(output, "threads.uwfb")))
	}
	f, err := durable.Create(durable.OS(), path, 0o600) // a run is private to its owner, who can share it
	if errors.Is(err, fs.ErrNotExist) {
		return bundle.Written{}, cmdline.NotFound("no directory for "+output,
			"mkdir -p "+plaintext.Word(filepath.Dir(path)))
	}
	if err != nil {
		return bundle.Written{}, err
	}
	written, err := bundle.Write(ctx, f, s, m, files)
	if err != nil {
		return written, errors.Join(err, f.Abort())
	}
	return written, f.Commit()
}

func (c *CLI) importNodes(ctx context.Context, cc *ucli.Context) (err error) {
	f, done, err := OpenBundle(ctx, c.Env, cc.Args().First())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	s, err := c.open(ctx, f.Algorithm())
	if err != nil {
		return err
	}
	imported, err := f.Import(ctx, bundle.Target{Store: s}, bundle.ImportOptions{Now: c.Env.Now})
	if err != nil {
		return err
	}
	if n := len(f.Manifest.Threads); n > 0 {
		fmt.Fprintf(c.Env.Stderr, "warning: imported only the nodes of %d threads; to import the threads: uwf "+
			"thread import\n", n)
	}
	return c.print(imported, func(w *bytes.Buffer) { PrintImported(w, imported) })
}

// PrintImported prints the result of an import. Threads that play a part of another one are only counted.
func PrintImported(w io.Writer, i bundle.Imported) {
	parents, below := map[string]string{}, map[string]map[string]int{}
	for _, t := range i.Threads {
		parents[t.Thread] = t.Parent
	}
	for _, t := range i.Threads {
		root := t.Thread
		for range i.Threads { // bounds the search if the data is inconsistent
			if up := parents[root]; up != "" {
				root = up
			}
		}
		if root != t.Thread {
			if below[root] == nil {
				below[root] = map[string]int{}
			}
			below[root][t.Result]++
		}
	}
	for _, t := range i.Threads {
		if _, here := parents[t.Parent]; here {
			continue
		}
		from := ""
		if t.From != "" {
			from = " (was " + t.From + ")"
		}
		for _, result := range slices.Sorted(maps.Keys(below[t.Thread])) {
			children := "children"
			if below[t.Thread][result] == 1 {
				children = "child"
			}
			from += fmt.Sprintf(", %d %s %s", below[t.Thread][result], children, result)
		}
		fmt.Fprintf(w, "%s  %s%s\n", t.Thread, t.Result, from)
	}
	for _, n := range i.Workflows {
		if n.Result == bundle.Unchanged {
			continue
		}
		fmt.Fprintln(w, namedText(n))
	}
	for _, h := range i.Redacted {
		fmt.Fprintf(w, "node %s was redacted here and stays so\n", h)
	}
	if n := len(i.Redactions); n > 0 {
		fmt.Fprintf(w, "contains only tombstones of %s, which the author of the bundle may have forged: %s\n",
			render.Count(n, "redaction"), hashes(i.Redactions))
	}
	if i.Trees > 0 {
		fmt.Fprintln(w, render.Count(i.Trees, "state")+" of the files kept")
	}
	fmt.Fprintf(w, "%d nodes, %d of them new\n", i.Nodes, i.Added)
}

// namedText describes the result for a workflow name.
func namedText(n bundle.ImportedWorkflow) string {
	name, own := plaintext.Line(n.Name), plaintext.Line(n.WorkflowName)
	switch n.Result {
	case bundle.Kept:
		return fmt.Sprintf("kept the name %s for another workflow, %s", name, n.Hash)
	case bundle.Misnamed:
		return fmt.Sprintf("not registered: the bundle calls workflow %s %s, but its name is %s", n.Hash, name, own)
	case bundle.Added:
		return fmt.Sprintf("registered the name %s for workflow %s", name, n.Hash)
	}
	return fmt.Sprintf("not registered: the name %s for workflow %s; to register it: --register", name, n.Hash)
}

// hashes lists the first few.
func hashes(all []cas.Hash) string {
	const shown = 5
	var words []string
	for _, h := range all[:min(len(all), shown)] {
		words = append(words, string(h))
	}
	if len(all) > shown {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}

// OpenBundle opens a bundle and checks its bytes; "-" is stdin. done closes it. The error is a
// [*protocol.Error] with the problem and its position.
func OpenBundle(ctx context.Context, e env.Env, name string) (_ *bundle.File, done func() error, err error) {
	if name == "-" {
		return receiveBundle(ctx, e.Stdin, "stdin")
	}
	in, err := os.Open(e.Path(name))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, cmdline.NoFile(e.Dir, name, "to create one: uwf thread export <thread> -o threads.uwfb")
	}
	if err != nil {
		return nil, nil, err
	}
	info, err := in.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = cmdline.Invalid(name+" is not a file", "name the file that uwf thread export -o wrote")
	}
	if err != nil {
		return nil, nil, errors.Join(err, in.Close())
	}
	f, done, err := receiveBundle(ctx, in, name)
	return f, done, errors.Join(err, in.Close())
}

// receiveBundle stores a bundle in a temporary file, uncompressed, because it is read twice.
func receiveBundle(ctx context.Context, in io.Reader, name string) (*bundle.File, func() error, error) {
	spool, err := os.CreateTemp("", "uwf-bundle-*")
	if err != nil {
		return nil, nil, err
	}
	gone := os.Remove(spool.Name()) == nil // leaves nothing after a kill; on Windows an open file can't be removed
	done := func() error {
		err := spool.Close()
		if !gone {
			err = errors.Join(err, os.Remove(spool.Name()))
		}
		return err
	}
	f, err := bundle.Receive(ctx, in, spool)
	if err != nil {
		return nil, nil, errors.Join(BundleError(name, err), done())
	}
	return f, done, nil
}

// BundleError converts an error about a bundle for the command line.
func BundleError(name string, err error) error {
	out := &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%s: %v", name, err), Err: err}
	switch {
	case errors.Is(err, bundle.ErrNotBundle):
		out.Message, out.Hints = name+" is not a bundle", []string{"to create one: uwf thread export <thread> -o threads.uwfb"}
	case errors.As(err, new(*bundle.NewerError)):
		return &protocol.Error{Code: protocol.CodeUnsupportedVersion, Message: out.Message, Err: err, Hints: []string{"upgrade uwf"}}
	case errors.As(err, new(*bundle.HashError)):
		out.Hints = []string{"to import it into a separate store: --store DIR --home DIR"}
	case errors.As(err, new(*bundle.FaultError)):
		out.Code, out.Message = protocol.CodeCorrupt, fmt.Sprintf("bundle %s is damaged: %v", name, err)
		out.Hints = []string{"nothing was changed; copy the file again from where it was exported"}
	default:
		return err
	}
	return out
}

// PrintTombstone prints that a node was redacted, and what confirms it.
func PrintTombstone(w io.Writer, h cas.Hash, reason string, at int64, sealed bool, threads ...string) {
	if reason != "" {
		reason = ": " + plaintext.Line(reason)
	}
	proof := "not sealed, so this tombstone may be forged"
	if sealed {
		proof = "sealed"
	}
	if len(threads) > 0 {
		proof = "thread " + strings.Join(threads, ", ") + "; " + proof
	}
	fmt.Fprintf(w, "redacted %s%s\n  %s; %s\n", h, reason, time.UnixMilli(at).UTC().Format(time.RFC3339), proof)
}

func (c *CLI) fsck(ctx context.Context, cc *ucli.Context) error {
	repair := cc.Bool("repair")
	s, err := c.existing(ctx)
	if err != nil {
		return err
	}
	if cc.IsSet("evict") {
		if repair {
			return cmdline.UsageError("--evict and --repair exclude each other", c.Program+" fsck --evict <hash>")
		}
		return c.evict(ctx, s, cc.String("evict"))
	}
	home, err := c.indexHome()
	if err != nil {
		return err
	}
	report, err := fsck.Run(ctx, s, fsck.Options{Home: home, Repair: repair, Program: c.Program, Now: c.Env.Now})
	if err != nil {
		return err
	}
	if c.Files != nil && home != "" {
		states, err := c.Files.CheckFiles(ctx, func(f fsck.Fault) { report.Faults = append(report.Faults, f) })
		if report.Files = states; err != nil {
			return err
		}
	}
	if !report.Sound() {
		c.Status = protocol.CodeCorrupt
	}
	if report.Faults == nil {
		report.Faults = []fsck.Fault{}
	}
	return c.print(report, func(w *bytes.Buffer) { printFsck(w, report) })
}

// indexHome returns the home directory, "" if it doesn't exist: a store can be used without one.
func (c *CLI) indexHome() (string, error) {
	dirs, err := c.Dirs()
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(dirs.Home); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return dirs.Home, nil
}

func printFsck(w io.Writer, r fsck.Report) {
	for _, f := range r.Faults {
		what := string(f.Kind)
		if f.Hash != "" {
			what += " " + string(f.Hash)
		}
		lines := []string{fmt.Sprintf("%s: %s", what, plaintext.Line(f.Message)), "  " + plaintext.Line(f.Path)}
		if f.Dependents > 0 {
			lines = append(lines, "  needed by "+dependents(f))
		}
		if f.Restore != "" {
			lines = append(lines, "  to restore it: "+plaintext.Line(f.Restore))
		}
		if f.Repaired != "" {
			lines = append(lines, "  repaired: "+plaintext.Line(f.Repaired))
		}
		fmt.Fprintln(w, strings.Join(lines, "\n"))
	}
	for _, t := range r.Tombstones {
		PrintTombstone(w, t.Hash, t.Reason, t.At, t.Sealed, t.Threads...)
		if t.Foreign {
			fmt.Fprintln(w, "  it was not made here: an import brought it, and the content takes its place when it is put")
		}
	}
	remain := r.Unlisted
	for _, f := range r.Faults {
		if f.Remains {
			remain++
		}
	}
	verdict := "nothing is wrong"
	if remain > 0 {
		verdict = render.Count(remain, "fault")
	}
	files := ""
	if r.Files > 0 {
		files = ", " + render.Count(r.Files, "state") + " of files"
	}
	fmt.Fprintf(w, "%s, %s, %s%s: %s\n", render.Count(r.Nodes, "node"), render.Count(r.Threads, "thread"),
		render.Count(r.Workflows, "registered workflow"), files, verdict)
}

func dependents(f fsck.Fault) string {
	var parts []string
	if len(f.Threads) > 0 {
		parts = append(parts, "thread "+strings.Join(f.Threads, ", "))
	}
	if len(f.Workflows) > 0 {
		parts = append(parts, "workflow "+strings.Join(f.Workflows, ", "))
	}
	if more := f.Dependents - len(f.Threads) - len(f.Workflows); more > 0 {
		parts = append(parts, fmt.Sprintf("%d more", more))
	}
	return strings.Join(parts, "; ")
}

func (c *CLI) gc(ctx context.Context, cc *ucli.Context) error {
	grace := gc.DefaultGrace
	if text := cc.String("grace"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return cmdline.UsageError(fmt.Sprintf("invalid --grace %q: want a duration such as 30m or 0s", text), "--grace 1h")
		}
		grace = d
	}
	s, err := c.existing(ctx)
	if err != nil {
		return err
	}
	if cc.Bool("auto") {
		if !s.CompactionDue(c.Env.Now()) {
			return nil
		}
		if err := s.BeginCompaction(); err != nil {
			return err
		}
		return gc.Pack(ctx, s, c.Env.Now())
	}
	for _, home := range cc.StringSlice("forget-home") {
		if err := c.forgetHome(ctx, s, c.Env.Path(home)); err != nil {
			return err
		}
	}
	homes, err := c.homes(s, cc.StringSlice("roots"))
	if err != nil {
		return err
	}
	report, err := gc.Run(ctx, s, gc.Options{
		Homes: homes, Grace: grace, DryRun: cc.Bool("dry-run"), Damaged: cc.Bool("damaged"), Now: c.Env.Now,
	})
	if err != nil {
		return err
	}
	answer := collected{Report: report}
	line := ""
	if c.Files != nil {
		if answer.Files, line, err = c.Files.CollectFiles(ctx, homes, report.DryRun, func(run func() error) error { return s.Exclusively(ctx, run) }); err != nil {
			return err
		}
	}
	return c.print(answer, func(w *bytes.Buffer) {
		verb := "removed"
		if report.DryRun {
			verb = "would remove"
		}
		fmt.Fprintf(w, "%s %d of %d nodes, %s of %s\n", verb, report.Freed, report.Nodes, render.Size(report.FreedSize),
			render.Size(report.Bytes))
		if line != "" {
			fmt.Fprintln(w, line)
		}
	})
}

// collected is the result of gc.
type collected struct {
	gc.Report
	Files any `json:"files,omitempty"`
}

// forgetHome removes the record of a home that was deleted.
func (c *CLI) forgetHome(ctx context.Context, s *fsstore.Store, home string) error {
	known, err := s.Homes()
	if err != nil {
		return err
	}
	if _, err := os.Stat(home); err == nil {
		return cmdline.Invalid(fmt.Sprintf("--forget-home %s exists, so its threads may need the nodes", home),
			"to choose the homes whose threads to keep: "+c.Program+" gc --roots DIR")
	}
	if !slices.Contains(known, home) {
		return cmdline.NotFound(fmt.Sprintf("--forget-home %s is not a home that uses the store %s", home, s.Dir()))
	}
	return s.ForgetHome(ctx, home)
}

// homes returns the homes whose threads are kept: the given ones, or all that have used the store.
func (c *CLI) homes(s *fsstore.Store, named []string) ([]string, error) {
	if s.Originals() {
		return nil, nil // gc.Run returns an error
	}
	if len(named) > 0 {
		for i := range named {
			named[i] = c.Env.Path(named[i])
			if info, err := os.Stat(named[i]); err != nil || !info.IsDir() {
				hints := []string{"--roots names a home, such as ~/.uwf"}
				if near := suggest.File(c.Env.Dir, named[i]); near != "" {
					hints = append([]string{"did you mean --roots " + plaintext.Word(near) + "?"}, hints...)
				}
				return nil, cmdline.NotFound(fmt.Sprintf("--roots %s is not a directory", named[i]), hints...)
			}
		}
		return named, nil
	}
	dirs, err := c.Dirs()
	if err != nil {
		return nil, err
	}
	homes, err := s.Homes()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(dirs.Home); err == nil && !slices.Contains(homes, dirs.Home) {
		homes = append(homes, dirs.Home)
	}
	if len(homes) == 0 {
		return nil, cmdline.UsageError(
			fmt.Sprintf("no home uses the store %s, so everything would be deleted", s.Dir()),
			"to name each home that uses it: "+c.Program+" gc --roots DIR")
	}
	for _, home := range homes {
		if _, err := os.Stat(home); errors.Is(err, os.ErrNotExist) {
			return nil, cmdline.NotFound(fmt.Sprintf("the home %s uses this store but does not exist", home),
				"mount it, or if it was deleted: "+c.Program+" gc --forget-home "+plaintext.Word(home))
		}
	}
	return homes, nil
}

// evicted is the result of fsck --evict.
type evicted struct {
	Hash cas.Hash `json:"evicted"`
	To   string   `json:"to"`
}

// evict moves a node to the quarantine, regardless of its content, so that other content with the
// same hash can be put. Otherwise the first content of a collision would block the other forever.
func (c *CLI) evict(ctx context.Context, s *fsstore.Store, arg string) error {
	h := cas.Hash(protocol.FoldCrockford(arg))
	if !h.Valid() {
		return cmdline.UsageError(fmt.Sprintf("--evict %q is not a hash", arg),
			c.Program+" fsck --evict <13 characters>")
	}
	if s.Kinds().InFoundation(h) {
		return cmdline.Invalid("node "+string(h)+" is a built-in schema and cannot be evicted", "to recreate it if it is damaged: "+c.Program+" fsck --repair")
	}
	there, err := s.Has(ctx, h)
	if err != nil {
		return err
	}
	if !there {
		return cmdline.NotFound("node not found: "+string(h), c.Program+" fsck")
	}
	_, err = s.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok && !redacted.Tombstone.Foreign {
		return cmdline.Invalid("node " + string(h) + " was redacted here, so its tombstone stays")
	}
	to, err := s.Quarantine(ctx, h)
	if err != nil {
		return err
	}
	return c.printLine(evicted{Hash: h, To: to},
		fmt.Sprintf("moved node %s to %s; put or import the right content, then: %s fsck", h, to, c.Program))
}
