module github.com/united-workforce/uwf/cmd/ocas

go 1.26.0

require (
	github.com/rogpeppe/go-internal v1.16.0
	github.com/stretchr/testify v1.12.1
	github.com/united-workforce/uwf/cas v0.1.0
	github.com/united-workforce/uwf/internal/thirdparty/cli v0.1.0
	github.com/united-workforce/uwf/util v0.1.0
)

require (
	github.com/cespare/xxhash/v2 v2.3.0 // indirect
	github.com/fxamacker/cbor/v2 v2.9.6 // indirect
	github.com/klauspost/compress v1.20.1 // indirect
	github.com/united-workforce/uwf/internal/thirdparty/jsonschema v0.1.0 // indirect
	github.com/united-workforce/uwf/internal/thirdparty/lean v0.1.0 // indirect
	github.com/united-workforce/uwf/internal/thirdparty/xxh3 v0.1.0 // indirect
	github.com/united-workforce/uwf/protocol v0.1.0 // indirect
	github.com/x448/float16 v0.8.4 // indirect
	github.com/xrash/smetrics v0.0.0-20240521201337-686a1a2994c1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/term v0.47.0 // indirect
	golang.org/x/tools v0.26.0 // indirect
)
