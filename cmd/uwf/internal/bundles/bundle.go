package bundles

import (
	"context"
	"errors"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Verify is uwf verify.
func (a Commands) Verify() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "verify", ArgsUsage: "<file>", Usage: "verify that a bundle is complete, and list what it holds; status 7 if it is not; - is stdin",
		Description: "It needs no store: every node that the threads lead to must be there, have its hash and satisfy its\n" +
			"type, and nothing else may be. Redacted nodes are listed. Whoever made the bundle could make\n" +
			"another one that is just as whole: compare the seal with one that you noted before.",
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "expect", Usage: "the `SEAL` that a thread of the bundle must have; status 7 if none has"}},
	}, a.bundleVerify)
}

func (a Commands) bundleVerify(ctx context.Context, c *ucli.Context) (err error) {
	name := c.Args().First()
	expect, err := expectedSeal(c)
	if err != nil {
		return err
	}
	f, done, err := ocascli.OpenBundle(ctx, a.Env, name)
	if err != nil {
		return unproved(err)
	}
	defer func() { err = errors.Join(err, done()) }()
	report, err := f.Check(ctx)
	if err != nil {
		return ocascli.BundleError(name, err)
	}
	if !expect.IsZero() && !hasSeal(report, expect) {
		return &protocol.Error{Code: protocol.CodeCorrupt, Message: fmt.Sprintf("bundle %s is whole, but no thread in it has the seal %s", name, expect)}
	}
	return a.Print(report, func(w io.Writer) error { return bundleText(w, report) })
}

// unproved is an error as a verification has it: what is not a bundle, or one that
// only a newer program can read, is not proved whole either.
func unproved(err error) error {
	var coded *protocol.Error
	if !errors.As(err, &coded) || coded.Code != protocol.CodeInvalid {
		return err
	}
	return &protocol.Error{Code: protocol.CodeCorrupt, Message: coded.Message, Hints: coded.Hints, Err: err}
}

// expectedSeal is the value of --expect, none if it is not given.
func expectedSeal(c *ucli.Context) (cas.Seal, error) {
	if !c.IsSet("expect") {
		return cas.Seal{}, nil
	}
	s, err := cas.ParseSeal(c.String("expect"))
	if err != nil || s.IsZero() {
		return s, cmdline.UsageError(fmt.Sprintf("--expect %q is not a seal: 64 hexadecimal digits", c.String("expect")), "uwf thread seal <thread> prints one")
	}
	return s, nil
}

func hasSeal(r bundle.Report, want cas.Seal) bool {
	for _, t := range r.Threads {
		if t.Seal == want.String() {
			return true
		}
	}
	for _, root := range r.Roots {
		if root.Seal == want.String() {
			return true
		}
	}
	return false
}

func bundleText(w io.Writer, r bundle.Report) error {
	t := term.NewTable("THREAD", "WORKFLOW", "STATUS", "STEPS", "HEAD", "SEAL")
	for _, th := range r.Threads {
		t.Row(th.Thread, th.WorkflowName, string(th.Status), fmt.Sprint(th.Steps), string(th.Head), sealText(th.Seal, th.Sealed))
	}
	if len(r.Threads) > 0 {
		if err := t.Print(w); err != nil {
			return err
		}
	}
	for _, named := range r.Workflows {
		if _, err := fmt.Fprintln(w, app.NameText(named)); err != nil {
			return err
		}
	}
	for _, root := range r.Roots {
		if _, err := fmt.Fprintf(w, "node %s  %s\n", root.Hash, sealText(root.Seal, root.Sealed)); err != nil {
			return err
		}
	}
	for _, t := range r.Tombstones {
		if err := ocascli.PrintTombstone(w, t.Hash, t.Reason, t.At, t.Sealed); err != nil {
			return err
		}
	}
	for _, link := range r.Links {
		if _, err := fmt.Fprintf(w, "link %s leads out of the work tree: an import wants --links\n", plaintext.Line(link)); err != nil {
			return err
		}
	}
	kept := ""
	if r.Trees > 0 {
		kept = fmt.Sprintf("%s of the files with %s, ", render.Count(r.Trees, "state"), render.Count(r.Objects, "object"))
	}
	_, err := fmt.Fprintf(w, "whole: %d nodes with %s hashes, %d redacted, %s%d bytes\n", r.Nodes, r.Hash, len(r.Tombstones), kept, r.Bytes)
	return err
}

// sealText is a seal as the bundle has it: carried, or only computed.
func sealText(seal string, carried bool) string {
	switch {
	case seal == "":
		return "none: a tombstone does not show its seal"
	case carried:
		return seal
	}
	return seal + " (computed)"
}
