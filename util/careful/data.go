package careful

import (
	"context"
	"io"
	"math"
	"os"
)

// Data reads what a file holds, without the holes that cost nothing and may be
// larger than any disk: each of them is one zero byte. Where holes cannot be told
// they are read as they are. A read fails with ctx's cause when ctx has ended.
func Data(ctx context.Context, f *os.File) io.Reader { return &data{ctx: ctx, f: f} }

type data struct {
	ctx       context.Context
	f         *os.File
	at, until int64 // what is known to be no hole
}

func (d *data) Read(p []byte) (int, error) {
	if d.ctx.Err() != nil {
		return 0, context.Cause(d.ctx)
	}
	if len(p) == 0 {
		return 0, nil
	}
	if d.at >= d.until {
		begin, end, err := nextData(d.f, d.at)
		if err != nil {
			return 0, err
		}
		skipped := begin > d.at
		d.at, d.until = begin, end
		if skipped {
			p[0] = 0
			return 1, nil
		}
	}
	n, err := d.f.ReadAt(p[:min(int64(len(p)), d.until-d.at)], d.at)
	d.at += int64(n)
	if n > 0 {
		return n, nil
	}
	return 0, err
}

// everything is the answer where holes cannot be told.
func everything(from int64) (begin, end int64, err error) { return from, math.MaxInt64, nil }
