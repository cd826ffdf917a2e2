{#- Datastream's events of an Oracle table.

    Order: scn, then rs_id, then ssn. Datastream's documentation orders by rs_id and ssn alone, which is wrong: rs_id is
    a place in one redo thread, and falls while scn rises. A bulk DELETE gives many rows one (rs_id, ssn); the keys of
    these rows distinguish them. What Datastream reads again after a rollback (`oracle-supplementation`) is a change if
    it has an scn. The delete of an insert that was rolled back has no key, only the address of its row: see
    `keyless_deletes_of`. LogMiner writes AAAAAAAAAAAAAAAAAA where it does not know the address of a row, as in inserts
    into tables with LOBs. -#}
{%- macro datastream_oracle(relation, object=none, generations=[], columns=none, table=none, source_columns=none) -%}
{{- reconcile.datastream_change_records(
      'oracle', relation, object, table, generations, columns,
      metadata=['scn', 'rs_id', 'ssn', 'tx_id', 'row_id'],
      coordinates={
        'scn': reconcile.hex_of_number('metadata.scn'),
        'rs_id': reconcile.hex_of_fields('metadata.rs_id', '.', 3),
        'ssn': reconcile.hex_of_number('metadata.ssn'),
      },
      positions={'scn': {'form': '([0-9]{1,18})', 'description': 'whole number', 'example': 15869128507100}},
      transaction="nullif(metadata.tx_id, '')",
      row_id="if(metadata.row_id in ('', 'AAAAAAAAAAAAAAAAAA'), null, metadata.row_id)",
      source_columns=source_columns) -}}
{%- endmacro %}
