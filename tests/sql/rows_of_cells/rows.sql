select
    row_key,
    `value word` as `word`,
    `value whole` as `whole`,
    `value no_text` as `no_text`,
    nullif(array_compact(array(
        if(`cell word` is not null and `value word` is null, 'word', null),
        if(`cell whole` is not null and `value whole` is null, 'whole', null),
        if(`cell no_text` is not null and `value no_text` is null, 'no_text', null)
    )), array()) as undecoded
from (
select
    *,
    if(char_length(`text word`) <= 3, `text word`, null) as `value word`,
    if(octet_length(`cell whole`) = 4, cast(conv(lpad(hex(`cell whole`), 16, if(substr(hex(`cell whole`), 1, 1) < '8', '0', 'F')), 16, -10) as int), null) as `value whole`,
    `cell no_text` as `value no_text`
from (
select
    *,
    try_validate_utf8(cast(`cell word` as string)) as `text word`
from (
select
    row_key,
    max_by(value, cell_time) filter (where family = 'f' and qualifier = X'776f7264') as `cell word`,
    max_by(value, cell_time) filter (where family = 'f' and qualifier = X'6e') as `cell whole`,
    max_by(value, cell_time) filter (where family = 'f' and qualifier = X'ff00') as `cell no_text`
from `demo`.`orders`
group by row_key
) as cells
) as texts
) as decoded
