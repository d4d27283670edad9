package remote

import (
	"context"
	"iter"
	"slices"

	"github.com/united-workforce/uwf/cas"
)

// MissingFrom is [Remote.Missing] for any number of hashes.
func MissingFrom(ctx context.Context, r Remote, hashes []cas.Hash) ([]cas.Hash, error) {
	var missing []cas.Hash
	for part := range slices.Chunk(hashes, MaxHashes) {
		found, err := r.Missing(ctx, part)
		if err != nil {
			return nil, err
		}
		missing = append(missing, found...)
	}
	return missing, nil
}

// GetAll is [Remote.Get] for any number of hashes.
func GetAll(ctx context.Context, r Remote, hashes []cas.Hash) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		for part := range slices.Chunk(hashes, MaxHashes) {
			for record, err := range r.Get(ctx, part) {
				if !yield(record, err) || err != nil {
					return
				}
			}
		}
	}
}

// PutAll is [Remote.Put] for any number of records, in batches. An error that is yielded
// ends it.
func PutAll(ctx context.Context, r Remote, records iter.Seq2[Record, error]) (different []cas.Hash, err error) {
	var batch []Record
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		found, err := r.Put(ctx, batch)
		different = append(different, found...)
		batch, size = nil, 0
		return err
	}
	for record, err := range records {
		if err != nil {
			return different, err
		}
		if len(batch) == MaxHashes || len(batch) > 0 && size+len(record.File) > MaxBatch {
			if err := flush(); err != nil {
				return different, err
			}
		}
		batch, size = append(batch, record), size+len(record.File)
	}
	return different, flush()
}

// CheckBatch refuses more than a Put may have.
func CheckBatch(records []Record) error {
	size, seen := 0, make(hashes, len(records))
	for _, r := range records {
		if !r.Hash.Valid() || seen[r.Hash] {
			return Faultf("%q is not a hash, or there twice", r.Hash)
		}
		seen[r.Hash] = true
		size += len(r.File)
	}
	if len(records) > MaxHashes || len(records) > 1 && size > MaxBatch {
		return Faultf("%d nodes with %d bytes are too many for one call: at most %d with %d", len(records), size, MaxHashes, MaxBatch)
	}
	return nil
}
