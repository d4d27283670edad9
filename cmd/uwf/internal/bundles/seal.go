package bundles

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/protocol"
)

// Seal is uwf thread seal.
func (a Commands) Seal() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "seal", ArgsUsage: "<thread>", Usage: "print one SHA-256 over the whole run, and store what it covers",
		Description: "Note the seal where nobody can change it. Later, --expect computes it again from everything that is\n" +
			"in the store and says whether the run is still what it was. Sealing again costs only new nodes.\n" +
			"Redacting a node does not change the seal.",
		Flags: []ucli.Flag{&ucli.StringFlag{Name: "expect", Usage: "compare with a `SEAL` from before; status 7 if the run has changed"}},
	}, a.threadSeal)
}

// sealed answers thread seal.
type sealed struct {
	Thread string        `json:"thread"`
	Head   protocol.Hash `json:"head"`
	Seal   string        `json:"seal"`
	New    int           `json:"newNodes"` // sealed for the first time
	Kept   bool          `json:"kept"`     // in the store
}

func (a Commands) threadSeal(ctx context.Context, c *ucli.Context) error {
	expect, err := expectedSeal(c)
	if err != nil {
		return err
	}
	id, head, err := a.ThreadHead(ctx, c)
	if err != nil {
		return err
	}
	out := sealed{Thread: id, Head: head}
	var got cas.Seal
	if expect.IsZero() {
		got, err = a.keepSeal(ctx, &out)
	} else {
		// Nothing that is kept is believed.
		s, openErr := a.Store(ctx)
		if openErr != nil {
			return openErr
		}
		got, err = seal.New(s, seal.Options{}).Seal(ctx, head)
	}
	if err != nil {
		return err
	}
	if !expect.IsZero() && got != expect {
		return &protocol.Error{
			Code: protocol.CodeCorrupt, Message: fmt.Sprintf("thread %s is not what it was: its seal is %s, not %s", id, got, expect),
			Hints: []string{"a thread that has gone on has another seal: uwf thread steps " + id, "uwf cas fsck"},
		}
	}
	out.Seal = got.String()
	return a.Print(out, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, got)
		return err
	})
}

// keepSeal seals a thread, and keeps the seals where that can be done.
func (a Commands) keepSeal(ctx context.Context, out *sealed) (cas.Seal, error) {
	s, err := a.files(ctx)
	if err != nil {
		return cas.Seal{}, err
	}
	release, err := a.HoldStore(ctx)
	if err != nil {
		return cas.Seal{}, err
	}
	defer release()
	keeper := seal.NewKeeper(s)
	got, err := keeper.Seal(ctx, out.Head)
	if err != nil {
		return got, err
	}
	if s.Originals() {
		a.Say("uwf: the store cannot keep seals: note this one")
		return got, nil
	}
	if err := keeper.Flush(ctx); errors.Is(err, fs.ErrPermission) {
		a.Say("uwf: the seal cannot be kept, note it: %v", err)
		return got, nil
	} else if err != nil {
		return got, err
	}
	out.New, out.Kept = keeper.New, true
	return got, nil
}
