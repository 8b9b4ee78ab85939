module github.com/keyseq/keyseq

go 1.26
