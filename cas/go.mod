module github.com/united-workforce/uwf/cas

go 1.26

require (
	github.com/united-workforce/uwf/protocol v0.1.0
	github.com/united-workforce/uwf/util v0.1.0
	github.com/zeebo/xxh3 v1.1.0
	github.com/cespare/xxhash/v2 v2.3.0
	github.com/fxamacker/cbor/v2 v2.9.6
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)
