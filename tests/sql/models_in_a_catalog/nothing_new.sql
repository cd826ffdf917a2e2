show tblproperties `ice`.`demo`.`orders__base`;

show tblproperties `ice`.`demo`.`orders`;

show tblproperties `ice`.`demo`.`orders__changes`;

show tblproperties `ice`.`demo`.`orders__quarantine`;

-- nothing new
